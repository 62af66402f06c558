// SPDX-License-Identifier: Apache-2.0
//
// The ten things of drawn photos. Each varies in its proportions and patterns,
// and is about two units wide or high.
#pragma once

#include <array>
#include <string_view>

#include "tests/support/photos/shape.h"

namespace leat::testing {

inline constexpr std::array<std::string_view, 10> kThings = {
    "ball",   "boat",  "car",      "cup",  "fish",
    "flower", "house", "mushroom", "tree", "umbrella"};

// REQUIRES: `thing` is an index of kThings.
Parts PartsOf(int thing, const Colour& colour, Random* random);

}  // namespace leat::testing
