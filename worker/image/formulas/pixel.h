// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of one pixel, as core/tensor/pointwise.h has that of one
// element: the same bits with every compiler and device.
#pragma once

#include <cstdint>

#include "core/tensor/pointwise.h"

namespace leat::worker {

// --- Resampling -------------------------------------------------------------

// The weighted sum of the bytes, rounded to a byte. Weights are integers whose
// sum is 1 << bits; `sum` starts at RoundingTerm(bits).
LEAT_PIXEL int32_t RoundingTerm(int bits) { return int32_t{1} << (bits - 1); }
LEAT_PIXEL int32_t AddTap(int32_t sum, uint8_t value, int16_t weight) {
  return sum + int32_t{value} * int32_t{weight};
}
LEAT_PIXEL uint8_t FinishTaps(int32_t sum, int bits) {
  const int32_t value = sum >> bits;  // arithmetic: rounds down
  return static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

// --- Colours ----------------------------------------------------------------

// a × b / 255, to the nearest.
LEAT_PIXEL uint8_t MulDiv255(uint8_t a, uint8_t b) {
  const uint32_t t = uint32_t{a} * b + 128;
  return static_cast<uint8_t>((t + (t >> 8)) >> 8);
}
// CMYK as Adobe stores it in JPEG (inverted: 255 is no ink): each of R, G, B is
// its ink × K / 255.
LEAT_PIXEL void CmykToRgb(const uint8_t cmyk[4], uint8_t rgb[3]) {
  for (int i = 0; i < 3; ++i) rgb[i] = MulDiv255(cmyk[i], cmyk[3]);
}
// BT.601 luma, 16-bit fixed point, as libjpeg's.
LEAT_PIXEL uint8_t Luma(const uint8_t rgb[3]) {
  return static_cast<uint8_t>(
      (19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
}
// BT.601 in the studio's range: Y in 16 … 235, Cb and Cr in 16 … 240; 20-bit
// fixed point, to the nearest:
// Y  = 16 + ( 65.481 R + 128.553 G +  24.966 B) / 255
// Cb = 128 + (-37.797 R -  74.203 G + 112     B) / 255
// Cr = 128 + (112     R -  93.786 G -  18.214 B) / 255
LEAT_PIXEL void RgbToYcbcr(const uint8_t rgb[3], uint8_t ycbcr[3]) {
  const int32_t r = rgb[0], g = rgb[1], b = rgb[2];
  constexpr int32_t kHalf = 1 << 19;
  ycbcr[0] = static_cast<uint8_t>(
      (269262 * r + 528618 * g + 102662 * b + (16 << 20) + kHalf) >> 20);
  ycbcr[1] = static_cast<uint8_t>(
      (-155424 * r - 305127 * g + 460551 * b + (128 << 20) + kHalf) >> 20);
  ycbcr[2] = static_cast<uint8_t>(
      (460551 * r - 385654 * g - 74897 * b + (128 << 20) + kHalf) >> 20);
}

}  // namespace leat::worker
