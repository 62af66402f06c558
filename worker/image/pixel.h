// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of one pixel: plain functions that a C++ and a CUDA compiler
// both take, so that every device computes the same bits. No SIMD, no libm, no
// state. REQUIRES: contraction of a product and a sum is off (see the root
// CMakeLists.txt).
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define LEAT_PIXEL __host__ __device__ inline
#else
#define LEAT_PIXEL inline
#endif

namespace leat::worker {

// --- Resampling -------------------------------------------------------------

// The bytes' weighted sum -> byte. Weights are integers whose sum is
// 1 << bits; `sum` starts at RoundingTerm(bits).
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

// --- Numbers ----------------------------------------------------------------

LEAT_PIXEL uint32_t BitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
LEAT_PIXEL float FloatOf(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// IEEE binary16, to the nearest, halves to even. A NaN becomes 0x7e00 with its
// sign.
LEAT_PIXEL uint16_t HalfOf(float value) {
  const uint32_t bits = BitsOf(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u)  // rounds to 65536 or more
    return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal
    if (magnitude < 0x33000000u) return static_cast<uint16_t>(sign);
    const uint32_t shift = 126 - (magnitude >> 23);  // 14 … 24
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t half = mantissa >> shift;
    const uint32_t rest = mantissa & ((1u << shift) - 1);
    const uint32_t middle = 1u << (shift - 1);
    const uint32_t up = rest > middle || (rest == middle && (half & 1));
    return static_cast<uint16_t>(sign | (half + up));
  }
  const uint32_t rebased = magnitude - 0x38000000u;
  return static_cast<uint16_t>(
      sign | ((rebased + 0xfffu + ((rebased >> 13) & 1)) >> 13));
}

LEAT_PIXEL float FloatOfHalf(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 31u;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 31) return FloatOf(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return FloatOf(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1.0p-24f;
  return FloatOf(sign | BitsOf(magnitude));
}

// (x - mean) × factor + shift, each step rounded to float.
LEAT_PIXEL float Normalized(float x, float mean, float factor, float shift) {
  const float centred = x - mean;
  const float scaled = centred * factor;
  return scaled + shift;
}

// The nearest integer, halves to even, within [least, greatest]; 0 for a NaN.
// REQUIRES: both bounds are exact in double, or one over the largest one.
LEAT_PIXEL int64_t SaturatedInt(double x, int64_t least, int64_t greatest) {
  if (!(x == x)) return 0;
  if (x <= static_cast<double>(least)) return least;
  if (x >= static_cast<double>(greatest)) return greatest;
  if (x >= 0x1.0p52 || x <= -0x1.0p52) return static_cast<int64_t>(x);
  int64_t down = static_cast<int64_t>(x);  // towards zero
  if (static_cast<double>(down) > x) --down;
  const double rest = x - static_cast<double>(down);
  const bool up = rest > 0.5 || (rest == 0.5 && (down & 1) != 0);
  return down + (up ? 1 : 0);
}

}  // namespace leat::worker
