// SPDX-License-Identifier: Apache-2.0
//
// How far apart two words are, for "did you mean".
#pragma once

#include <cstddef>
#include <string_view>

namespace leat {

// The fewest edits from `a` to `b`: a byte is inserted, deleted or replaced, or
// two neighbours are swapped. O(|a| · |b|).
size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace leat
