// SPDX-License-Identifier: Apache-2.0
//
// Arguments of readers whose outputs a script chooses: `paths`, names of
// outputs, and their `types`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/graph.h"
#include "core/pipeline/operators.h"

namespace leat::worker {

// kInvalidArgument: there are none; names the reader.
absl::StatusOr<std::vector<std::string>> PathsArg(const Node& reader);

// One type for each of the `outputs` that `argument` names. kInvalidArgument:
// of another number, or none; an invalid type.
struct OutputArgs {
  std::vector<std::string> names;
  std::vector<ValueType> types;
};
absl::StatusOr<OutputArgs> OutputArgsOf(const Node& reader,
                                        const char* argument,
                                        std::string_view outputs);

}  // namespace leat::worker
