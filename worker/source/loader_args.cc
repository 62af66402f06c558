// SPDX-License-Identifier: Apache-2.0
#include "worker/source/loader_args.h"

#include <utility>

#include "core/status.h"

namespace leat::worker {
namespace {

absl::Status CheckText(const Node& reader, const char* name,
                       const std::string& text) {
  if (text.find('\0') == std::string::npos) return absl::OkStatus();
  return InvalidArgument("{}: {} has a byte 0", reader.op, name);
}

}  // namespace

absl::StatusOr<std::string> TextArg(const Node& reader, const char* name,
                                    std::string fallback) {
  const auto it = reader.args.find(name);
  if (it == reader.args.end()) return fallback;
  const std::string* const text = std::get_if<std::string>(&it->second);
  if (text == nullptr)
    return InvalidArgument("{}: {}: want a text", reader.op, name);
  RETURN_IF_ERROR(CheckText(reader, name, *text));
  return *text;
}

absl::StatusOr<std::vector<std::string>> TextsArg(const Node& reader,
                                                  const char* name) {
  const auto it = reader.args.find(name);
  if (it == reader.args.end()) return std::vector<std::string>();
  const auto* const texts = std::get_if<std::vector<std::string>>(&it->second);
  if (texts == nullptr)
    return InvalidArgument("{}: {}: want a list of texts", reader.op, name);
  for (const std::string& text : *texts)
    RETURN_IF_ERROR(CheckText(reader, name, text));
  return *texts;
}

}  // namespace leat::worker
