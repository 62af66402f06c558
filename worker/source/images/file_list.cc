// SPDX-License-Identifier: Apache-2.0
#include "worker/source/images/file_list.h"

#include <algorithm>
#include <charconv>

#include "absl/container/flat_hash_set.h"
#include "core/status.h"

namespace leat::worker {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";
// A file that is not a list may be secret, so messages do not quote it.
std::string SizeText(std::string_view line) {
  return fmt::format("{} bytes", line.size());
}

absl::StatusOr<LabelledFile> ParseLine(std::string_view line) {
  const size_t label_at = line.find_last_of(kBlanks) + 1;  // npos + 1 is 0
  const std::string_view label = line.substr(label_at);
  LabelledFile file;
  const auto [end, error] =
      std::from_chars(label.data(), label.data() + label.size(), file.label);
  if (error != std::errc() || end != label.data() + label.size() ||
      file.label < 0)
    return InvalidArgument(
        "{}: want a name, a blank and its label, a whole number of 0 to "
        "2147483647 (a comma does not part them)",
        SizeText(line));
  const std::string_view before = line.substr(0, label_at);
  const size_t name_end = before.find_last_not_of(kBlanks) + 1;
  if (name_end == 0)
    return InvalidArgument("{}: a label without a name", SizeText(line));
  file.name = before.substr(0, name_end);
  if (file.name.find('\0') != std::string::npos)
    return InvalidArgument("{}: a name with a byte 0", SizeText(line));
  return file;
}

}  // namespace

absl::StatusOr<std::vector<LabelledFile>> ParseFileList(std::string_view text,
                                                        uint64_t max_files) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark))
    text.remove_prefix(kByteOrderMark.size());
  std::vector<LabelledFile> files;
  uint64_t number = 0;
  while (!text.empty()) {
    const size_t newline = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(std::min(newline + 1, text.size()));
    ++number;
    line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
    if (line.empty()) continue;
    if (files.size() == max_files)
      return ResourceExhausted("more than {} files: the limit", max_files);
    absl::StatusOr<LabelledFile> file = ParseLine(line);
    if (!file.ok())
      return Annotate(file.status(), fmt::format("line {}", number));
    files.push_back(*std::move(file));
  }
  return files;
}

std::vector<Group> GroupsOfLabels(std::span<const int32_t> labels) {
  std::vector<Group> groups;
  absl::flat_hash_set<int32_t> seen;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (i == 0 || labels[i] != labels[i - 1]) {
      if (groups.size() == kMaxGroups || !seen.insert(labels[i]).second)
        return {};
      groups.push_back({.name = fmt::format("{}", labels[i]), .samples = 0});
    }
    ++groups.back().samples;
  }
  return groups;
}

}  // namespace leat::worker
