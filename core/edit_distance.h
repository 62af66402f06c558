// SPDX-License-Identifier: Apache-2.0
//
// EditDistance measures how far apart two words are, for "did you mean".
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace leat {

// Returns the smallest number of edits from `a` to `b`: an edit inserts,
// deletes or replaces a byte, or swaps two neighbours. O(|a| · |b|).
size_t EditDistance(std::string_view a, std::string_view b);

// Returns an iterator to the first of the words that are nearest to `word`, or
// the end if there are no words.
template <class Words>
auto NearestWord(const Words& words, std::string_view word) {
  return std::ranges::min_element(words, {}, [&](std::string_view each) {
    return EditDistance(word, each);
  });
}

}  // namespace leat
