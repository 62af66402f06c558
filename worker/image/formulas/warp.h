// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of rotate and warp_affine: one pixel, the same bits with every
// compiler and device.
//
// Pixel i of a row covers [i, i + 1); its centre is i + 0.5 (DALI's
// convention). The centre of a pixel of the result is mapped into the image by
//   sx = xx (x + 0.5) + xy (y + 0.5) + x0
//   sy = yx (x + 0.5) + yy (y + 0.5) + y0
// in 64-bit fixed point with 32 bits of fraction. nearest: the pixel that
// covers (sx, sy); linear: between the four around it. Outside the image: a
// fill value, or the nearest pixel of its edge.
#pragma once

#include <cstdint>

#include "core/tensor/pointwise.h"

namespace leat::worker {

struct WarpMap {
  // Where the centre of the result's first pixel maps to, and the steps.
  int64_t x0 = 0, y0 = 0;
  int64_t xx = 0, xy = 0, yx = 0, yy = 0;

  LEAT_PIXEL int64_t SourceX(int64_t x, int64_t y) const {
    return x0 + x * xx + y * xy;
  }
  LEAT_PIXEL int64_t SourceY(int64_t x, int64_t y) const {
    return y0 + x * yx + y * yy;
  }
};

inline constexpr int64_t kWarpOne = int64_t{1} << 32;
inline constexpr int64_t kWarpHalf = kWarpOne / 2;

// Rounds down, also negative numbers.
LEAT_PIXEL int64_t WarpFloor(int64_t at) { return at >> 32; }

// The distance of `at` from WarpFloor(at).
//   For bytes: in 1/2048.
LEAT_PIXEL int32_t WarpWeight(int64_t at) {
  return static_cast<int32_t>(
      ((static_cast<uint64_t>(at) & 0xffffffffu) + (1u << 20)) >> 21);
}
//   For floats: 24 bits, exact.
LEAT_PIXEL float WarpFraction(int64_t at) {
  return static_cast<float>((static_cast<uint64_t>(at) & 0xffffffffu) >> 8) *
         0x1.0p-24f;
}

// a, b: of the upper row; c, d: of the lower one. fx, fy: weights of b, and of
// the lower row.
LEAT_PIXEL uint8_t WarpBlend(uint8_t a, uint8_t b, uint8_t c, uint8_t d,
                             int32_t fx, int32_t fy) {
  const int32_t upper = a * (2048 - fx) + b * fx;
  const int32_t lower = c * (2048 - fx) + d * fx;
  return static_cast<uint8_t>((upper * (2048 - fy) + lower * fy + (1 << 21)) >>
                              22);
}
LEAT_PIXEL float WarpBlend(float a, float b, float c, float d, float fx,
                           float fy) {
  const float gx = 1.0f - fx;
  const float upper = a * gx + b * fx;
  const float lower = c * gx + d * fx;
  const float step = (lower - upper) * fy;
  const float value = upper + step;
  return value == value ? value : FloatOf(0x7fc00000u);
}

}  // namespace leat::worker
