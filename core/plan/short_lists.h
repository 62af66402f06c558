// SPDX-License-Identifier: Apache-2.0
//
// Short lists: a reader's text for people. Its lists of files and labels may
// have thousands of entries. A list of more than kWholeList entries is cut to
// the first kShownOfList, the number of the others, and a digest, by which two
// lists can be compared.
//
// Pure functions. Texts may come from another program, and have any bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace leat {

inline constexpr size_t kWholeList = 16;
inline constexpr size_t kShownOfList = 3;

// Returns "and 4997 more (digest 1a2b3c4d5e6f)", which follows the first
// kShownOfList of `count` entries. `whole`: the bytes of all of them. REQUIRES:
// count > kShownOfList.
std::string MoreOfList(size_t count, std::string_view whole);

// Returns a canonical text (core/pipeline/graph.h) with its lists cut. A text
// that ends within a list or a quotation is cut, too.
std::string WithShortLists(std::string_view canonical);

}  // namespace leat
