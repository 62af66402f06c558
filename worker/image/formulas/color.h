// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of colours: the same bits with every compiler and device.
//
// Every operator on colours is one map of a pixel's channels, linear except for
// a constant:
//
//   brightness_contrast
//     shift·range + brightness·(center + contrast·(x − center))
//   hue, saturation, hsv, color_twist
//     brightness·contrast · YIQ→RGB · R(hue) · diag(1, s, s) · value · RGB→YIQ
//     + middle·(1 − contrast)·brightness
//   color_space_conversion
//     ITU-R BT.601 with 16 to 235 (Y), 16 to 240 (Cb, Cr)
//
// R(h) turns I and Q: (cos h, sin h; −sin h, cos h). Source: DALI's operators
// of these names (dali/operators/image/color), its RGB→YIQ and the inverse.
#pragma once

#include <cstdint>

#include "core/tensor/pointwise.h"

namespace leat::worker {

// The nearest byte, halves to even, saturated; 0 for a NaN: the same as
// Converted, but without a branch. Adding 2^23 leaves a float no room for a
// fraction.
LEAT_PIXEL uint8_t ByteOf(float x) {
  const float positive = x > 0 ? x : 0;
  const float bounded = positive < 255 ? positive : 255;
  return static_cast<uint8_t>(BitsOf(bounded + 0x1p23f));
}

// x·factor + constant, each step rounded to float.
LEAT_PIXEL float Linear(float x, float factor, float constant) {
  const float scaled = x * factor;
  return scaled + constant;
}

// Row i of `m` gives channel i of the result.
struct ColorMatrix {
  float m[3][3];
  float constant[3];
};

LEAT_PIXEL float MatrixRow(const ColorMatrix& matrix, int row, float x0,
                           float x1, float x2) {
  const float t0 = matrix.m[row][0] * x0;
  const float t1 = matrix.m[row][1] * x1;
  const float t2 = matrix.m[row][2] * x2;
  return ((t0 + t1) + t2) + matrix.constant[row];
}

}  // namespace leat::worker
