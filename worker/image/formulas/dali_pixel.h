// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of rule "dali": resampling and warping as DALI's CPU operators
// compute them, in float32; one tap or one pixel at a time, the same bits with
// every compiler and device.
//
// Resampling: position x of the result lies at begin + (x + 0.5) × step of the
// axis; a tap beyond the image repeats the edge pixel, with its own weight;
// weights are normalised over all taps. The first pass gives floats, neither
// rounded nor clamped; the last one rounds, halves to even, and saturates.
#pragma once

#include <cstdint>

#include "core/tensor/pointwise.h"

namespace leat::worker {

// Rounds down. REQUIRES: |x| < 2^31.
LEAT_PIXEL int32_t DaliFloor(float x) {
  const auto down = static_cast<int32_t>(x);
  return static_cast<float>(down) > x ? down - 1 : down;
}
LEAT_PIXEL int32_t DaliCeil(float x) {
  const auto down = static_cast<int32_t>(x);
  return static_cast<float>(down) < x ? down + 1 : down;
}

// A filter that is given at `count` points, linear between them and 0 beyond.
LEAT_PIXEL float DaliFilterAt(const float* points, int32_t count, float x) {
  if (!(x > -1.0f) || x >= static_cast<float>(count)) return 0.0f;
  const int32_t at = DaliFloor(x);
  const float rest = x - static_cast<float>(at);
  const float before = at < 0 ? 0.0f : points[at];
  const float after = at + 1 >= count ? 0.0f : points[at + 1];
  const float step = rest * (after - before);
  return before + step;
}

LEAT_PIXEL float AddDaliTap(float sum, float value, float weight) {
  const float product = value * weight;
  return sum + product;
}
// Rounds to the nearest, halves to even: the low bits of the sum with 1.5 ×
// 2^23 are the result. REQUIRES: no fast math, so that no compiler reorders the
// addition.
LEAT_PIXEL uint8_t FinishDaliTaps(float sum) {
  const float least = sum < 0.0f ? 0.0f : sum;
  const float value = least > 255.0f ? 255.0f : least;
  return static_cast<uint8_t>(BitsOf(value + 12582912.0f));
}

// Returns the pixel of an axis of n that covers `place`, for filter nearest.
LEAT_PIXEL int32_t DaliNearest(float place, int32_t n) {
  const int32_t at = DaliFloor(place);
  return at < 0 ? 0 : at >= n ? n - 1 : at;
}

// Warping: a row is cut into runs of kDaliRun pixels. The position of the row's
// first pixel is computed; the first position of each later run is that of the
// run before plus kDaliRun steps; any other position is the one before plus a
// step, (xx, yx).
inline constexpr int32_t kDaliRun = 256;
struct DaliMap {
  float xx = 1, xy = 0, x0 = 0;
  float yx = 0, yy = 1, y0 = 0;

  // The position that row y's first pixel is read from.
  LEAT_PIXEL float FirstX(int32_t y) const { return First(xx, xy, x0, y); }
  LEAT_PIXEL float FirstY(int32_t y) const { return First(yx, yy, y0, y); }
  // The distance from run to run.
  LEAT_PIXEL float RunX() const { return xx * static_cast<float>(kDaliRun); }
  LEAT_PIXEL float RunY() const { return yx * static_cast<float>(kDaliRun); }

 private:
  LEAT_PIXEL static float First(float of_x, float of_y, float start,
                                int32_t y) {
    const float across = of_x * 0.5f;
    const float down = of_y * (static_cast<float>(y) + 0.5f);
    return (start + across) + down;
  }
};

// Interpolates linearly between four pixels, a and b of the upper row, c and d
// of the lower one; fx and fy: the distances from a.
LEAT_PIXEL float DaliBlend(float a, float b, float c, float d, float fx,
                           float fy) {
  const float gx = 1.0f - fx;
  const float upper = a * gx + b * fx;
  const float lower = c * gx + d * fx;
  const float step = (lower - upper) * fy;
  return upper + step;
}

// Rounds to the nearest byte, halves up.
LEAT_PIXEL uint8_t FinishDaliBlend(float sum) {
  const float least = sum < 0.0f ? 0.0f : sum;
  const float value = least > 255.0f ? 255.0f : least;
  const auto down = static_cast<int32_t>(value);
  const bool up = value - static_cast<float>(down) >= 0.5f;
  return static_cast<uint8_t>(up ? down + 1 : down);
}

}  // namespace leat::worker
