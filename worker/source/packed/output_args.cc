// SPDX-License-Identifier: Apache-2.0
#include "worker/source/packed/output_args.h"

#include <utility>

#include "core/shapes/field_type.h"
#include "core/status.h"
#include "worker/source/loader_args.h"

namespace leat::worker {

absl::StatusOr<std::vector<std::string>> PathsArg(const Node& reader) {
  ASSIGN_OR_RETURN(std::vector<std::string> paths, TextsArg(reader, "paths"));
  if (paths.empty())
    return InvalidArgument("{}: paths: want at least one", reader.op);
  return paths;
}

absl::StatusOr<OutputArgs> OutputArgsOf(const Node& reader,
                                        const char* argument,
                                        std::string_view outputs) {
  OutputArgs args;
  ASSIGN_OR_RETURN(args.names, TextsArg(reader, argument));
  ASSIGN_OR_RETURN(const std::vector<std::string> types,
                   TextsArg(reader, "types"));
  if (args.names.empty() || types.size() != args.names.size())
    return InvalidArgument(
        "{}: {} {} and {} types: want as many, and at least one", reader.op,
        args.names.size(), outputs, types.size());
  for (const std::string& text : types) {
    absl::StatusOr<ValueType> type = ParseFieldType(text);
    if (!type.ok())
      return Annotate(type.status(), fmt::format("{}: types", reader.op));
    args.types.push_back(*std::move(type));
  }
  return args;
}

}  // namespace leat::worker
