// SPDX-License-Identifier: Apache-2.0
//
// EditDistance measures how far apart two words are, for "did you mean".
#pragma once

#include <cstddef>
#include <string_view>

namespace leat {

// Returns the smallest number of edits from `a` to `b`: an edit inserts,
// deletes or replaces a byte, or swaps two neighbours. O(|a| · |b|).
size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace leat
