// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of automatic augmentation, one value at a time: the same bits
// with every compiler and device. Brightness, contrast and color use Linear and
// MatrixRow of color.h, the moves use warp.h.
//
// Source: DALI's nvidia.dali.auto_aug.augmentations; equalize is OpenCV's
// equalizeHist.
#pragma once

#include <cstdint>

#include "worker/image/formulas/color.h"

namespace leat::worker {

// How a byte is mapped: by its value alone, or by the histogram of the image.
enum class ByteMap : uint8_t {
  kSame,
  kLinear,
  kMask,
  kSolarize,
  kSolarizeAdd,
  kAutoContrast,
  kContrast,
  kEqualize,
};
LEAT_PIXEL bool NeedsCounts(ByteMap map) {
  return map >= ByteMap::kAutoContrast;
}

// The `bits` highest bits. REQUIRES: 1 ≤ bits ≤ 8.
LEAT_PIXEL uint8_t PosterizeMask(int32_t bits) {
  return static_cast<uint8_t>(0xff00u >> bits);
}

// `threshold`: the least value that is inverted, 0 to 256.
LEAT_PIXEL uint8_t Solarized(uint8_t x, int32_t threshold) {
  return static_cast<uint8_t>(x < threshold ? x : 255 - x);
}

// REQUIRES: 0 ≤ shift ≤ 127.
LEAT_PIXEL uint8_t SolarizedByAdding(uint8_t x, int32_t shift) {
  return static_cast<uint8_t>(x < 128 ? x + shift : x);
}

// x (1 + s) - s (neighbours + 5 x) / 13 for the factor 1 + s: 1 keeps the
// image, 0 blurs it. `neighbours`: the sum of the eight around x.
struct SharpnessWeights {
  float centre, neighbour;
};
LEAT_PIXEL SharpnessWeights SharpnessOf(float factor) {
  const float s = factor - 1;
  return {1 + s * (8.0f / 13), s * (-1.0f / 13)};
}
LEAT_PIXEL uint8_t Sharpened(uint8_t x, int32_t neighbours,
                             SharpnessWeights weights) {
  const float own = weights.centre * static_cast<float>(x);
  const float others = weights.neighbour * static_cast<float>(neighbours);
  return ByteOf(own + others);
}

// --- Tables of one channel, from the counts of its values -------------------

// Maps x so that the least value becomes 0 and the greatest one 255; an image
// of one value stays.
LEAT_PIXEL uint8_t AutoContrasted(int32_t x, int32_t least, int32_t greatest) {
  if (least == greatest) return static_cast<uint8_t>(x);
  const float scale = 255.0f / static_cast<float>(greatest - least);
  return ByteOf(static_cast<float>(x - least) * scale);
}

// `upto`: the number of values that are at most x and above the image's least
// value; `above`: the number of all values above the least. The caller leaves
// an image of one value unchanged.
LEAT_PIXEL uint8_t Equalized(uint32_t upto, uint32_t above) {
  const float scale = 255.0f / static_cast<float>(above);
  return ByteOf(static_cast<float>(upto) * scale);
}

// --- Contrast: the distance from the mean of gray ---------------------------

// The weighted sum over channels; `sum`: of the values of channel c.
LEAT_PIXEL double AddGray(double gray, uint64_t sum, int64_t channels,
                          int64_t c) {
  const double weight = channels == 1 ? 1
                        : c == 0      ? .299
                        : c == 1      ? .587
                                      : .114;
  const double share = static_cast<double>(sum) * weight;
  return gray + share;
}
// The constant of Linear for a contrast of `factor`.
LEAT_PIXEL float ContrastConstant(double centre, double factor) {
  const double kept = centre * factor;
  return static_cast<float>(centre - kept);
}

}  // namespace leat::worker
