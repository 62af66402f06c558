// SPDX-License-Identifier: Apache-2.0
#include "core/plan/short_lists.h"

#include <algorithm>
#include <vector>

#include "core/hash.h"
#include "fmt/format.h"

namespace leat {
namespace {

constexpr size_t kDigestDigits = 12;

// Returns the end of the quotation that begins at `begin`: after its last
// quote, or the end of the text.
size_t AfterQuoted(std::string_view text, size_t begin) {
  for (size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
  }
  return text.size();
}

// A list of a canonical text, from its bracket to the one that closes it.
struct EntriesOfList {
  std::vector<size_t> ends;  // of its entries
  size_t end = 0;            // after the bracket
};

EntriesOfList EntriesAt(std::string_view text, size_t begin) {
  EntriesOfList list;
  size_t i = begin + 1;
  while (i < text.size() && text[i] != ']') {
    if (text[i] == '"') {
      i = AfterQuoted(text, i);
      continue;
    }
    if (text[i] == ',') list.ends.push_back(i);
    ++i;
  }
  if (i > begin + 1) list.ends.push_back(i);
  list.end = std::min(i + 1, text.size());
  return list;
}

}  // namespace

std::string MoreOfList(size_t count, std::string_view whole) {
  return fmt::format("and {} more (digest {})", count - kShownOfList,
                     ToHex(HashOf(whole)).substr(0, kDigestDigits));
}

std::string WithShortLists(std::string_view canonical) {
  std::string out;
  for (size_t i = 0; i < canonical.size();) {
    if (canonical[i] == '"') {
      const size_t end = AfterQuoted(canonical, i);
      out += canonical.substr(i, end - i);
      i = end;
      continue;
    }
    if (canonical[i] != '[') {
      out += canonical[i++];
      continue;
    }
    const EntriesOfList list = EntriesAt(canonical, i);
    const std::string_view whole = canonical.substr(i, list.end - i);
    if (list.ends.size() <= kWholeList)
      out += whole;
    else
      out += fmt::format("{}, {}]",
                         canonical.substr(i, list.ends[kShownOfList - 1] - i),
                         MoreOfList(list.ends.size(), whole));
    i = list.end;
  }
  return out;
}

}  // namespace leat
