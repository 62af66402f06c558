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
  if (const auto* list = std::get_if<LongList>(&it->second);
      list != nullptr && list->kind == LongList::Kind::kTexts)
    return list->values == nullptr ? list->first : leat::TextsOf(*list);
  const auto* const texts = std::get_if<std::vector<std::string>>(&it->second);
  if (texts == nullptr)
    return InvalidArgument("{}: {}: want a list of texts", reader.op, name);
  for (const std::string& text : *texts)
    RETURN_IF_ERROR(CheckText(reader, name, text));
  return *texts;
}

absl::StatusOr<std::vector<int64_t>> IntsArg(const Node& reader,
                                             const char* name) {
  const auto it = reader.args.find(name);
  if (it == reader.args.end()) return std::vector<int64_t>();
  if (const auto* list = std::get_if<LongList>(&it->second);
      list != nullptr && list->kind == LongList::Kind::kInts &&
      list->values != nullptr)
    return leat::IntsOf(*list);
  const auto* const ints = std::get_if<std::vector<int64_t>>(&it->second);
  if (ints == nullptr)
    return InvalidArgument("{}: {}: want a list of integers", reader.op, name);
  return *ints;
}

std::string LongListKey(const Node& reader, const char* name) {
  const auto it = reader.args.find(name);
  if (it == reader.args.end()) return "";
  const auto* const list = std::get_if<LongList>(&it->second);
  return list == nullptr ? "" : "list:" + ToHex(list->digest);
}

absl::Status WantValues(const Node& reader) {
  for (const auto& [name, value] : reader.args)
    if (const auto* list = std::get_if<LongList>(&value);
        list != nullptr && list->values == nullptr)
      return Internal("{}: {}: the entries of a list of {} are not here",
                      reader.op, name, list->count);
  return absl::OkStatus();
}

}  // namespace leat::worker
