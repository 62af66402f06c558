// SPDX-License-Identifier: Apache-2.0
#include "client/cli/base/suggestions.h"

#include <algorithm>
#include <utility>

#include "client/cli/base/text.h"
#include "core/edit_distance.h"
#include "core/status.h"

namespace leat::cli {
namespace {

constexpr size_t kMaxListed = 8;
constexpr size_t kMaxCompared = 256;  // bytes of a name

std::string Join(const std::vector<std::string>& names, size_t most) {
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) {
    out += (i == 0 ? "" : ", ") + Printable(names[i]);
  }
  if (names.size() > most) {
    out += fmt::format(" and {} more", names.size() - most);
  }
  return out;
}

}  // namespace

std::vector<std::string> Suggestions(std::string_view word,
                                     const std::vector<std::string>& names) {
  // With two edits, only one of three letters would remain.
  const size_t limit =
      word.size() < 4 ? 1 : std::max<size_t>(2, word.size() / 3);
  std::vector<std::pair<size_t, std::string>> found;
  if (word.empty() || word.size() > kMaxCompared) return {};
  for (const std::string& name : names) {
    if (name.size() > kMaxCompared) continue;
    const size_t distance =
        name.starts_with(word) ? 0 : EditDistance(word, name);
    if (distance <= limit && distance < word.size()) {
      found.emplace_back(distance, name);
    }
  }
  std::sort(found.begin(), found.end());
  // Two datasets may have one name.
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<std::string> suggestions;
  for (size_t i = 0; i < std::min<size_t>(3, found.size()); ++i) {
    suggestions.push_back(std::move(found[i].second));
  }
  return suggestions;
}

std::string DidYouMean(std::string_view word,
                       const std::vector<std::string>& names) {
  const std::vector<std::string> suggestions = Suggestions(word, names);
  return suggestions.empty() ? ""
                             : "; did you mean " + Join(suggestions, 3) + "?";
}

absl::StatusOr<size_t> FindName(std::string_view kind, std::string_view word,
                                const std::vector<std::string>& names) {
  std::vector<std::string> begin;
  size_t found = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == word) return i;
    if (!names[i].starts_with(word)) continue;
    found = i;
    begin.push_back(names[i]);
  }
  if (begin.size() == 1) return found;
  if (begin.size() > 1) {
    return InvalidArgument("{} \"{}\" is the beginning of {} names: {}", kind,
                           Printable(word), begin.size(),
                           Join(begin, kMaxListed));
  }
  std::string hint = DidYouMean(word, names);
  if (hint.empty()) {
    hint = names.empty() ? fmt::format(" (there is no {})", kind)
                         : " (there are: " + Join(names, kMaxListed) + ")";
  }
  return NotFound("no {} \"{}\"{}", kind, Printable(word), hint);
}

}  // namespace leat::cli
