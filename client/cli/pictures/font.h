// SPDX-License-Identifier: Apache-2.0
//
// A dot-matrix font (5 × 7 and what hangs below the line) of ASCII, for the
// captions of contact sheets.
#pragma once

#include <cstdint>

namespace leat::cli {

inline constexpr int kGlyphWidth = 5;
inline constexpr int kGlyphHeight = 9;

// Nine rows from the top, the last two below the line, bit 4 the leftmost dot;
// the question mark for anything that is not printable ASCII.
const uint8_t* Glyph(char c);

}  // namespace leat::cli
