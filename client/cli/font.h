// SPDX-License-Identifier: Apache-2.0
//
// A 5 × 7 dot-matrix font of ASCII, for the captions of contact sheets.
#pragma once

#include <cstdint>

namespace leat::cli {

inline constexpr int kGlyphWidth = 5;
inline constexpr int kGlyphHeight = 7;

// Seven rows from the top, bit 4 the leftmost dot; the question mark for
// anything that is not printable ASCII.
const uint8_t* Glyph(char c);

}  // namespace leat::cli
