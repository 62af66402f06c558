// SPDX-License-Identifier: Apache-2.0
//
// A dot-matrix font (5 × 7 plus descenders) for ASCII, for the captions of
// contact sheets.
#pragma once

#include <cstdint>

namespace leat::cli {

inline constexpr int kGlyphWidth = 5;
inline constexpr int kGlyphHeight = 9;

// Returns nine rows from the top, the last two below the baseline, bit 4 the
// leftmost dot; a question mark for anything that is not printable ASCII.
const uint8_t* Glyph(char c);

}  // namespace leat::cli
