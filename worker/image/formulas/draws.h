// SPDX-License-Identifier: Apache-2.0
//
// Turns random words (SampleRng) into random values: the same bits with every
// compiler and device. The only libm function is sqrtf, which IEEE 754 defines.
//
// Element i of a tensor takes words 2i and 2i + 1, or word i, so that a device
// may begin anywhere.
#pragma once

#include <math.h>

#include <cstdint>

#include "core/tensor/pointwise.h"
#include "worker/image/formulas/exact_math.h"

namespace leat::worker {

// log x of a normal float > 0. x = m·2^k with m in [√½, √2); log m = 2
// artanh((m − 1) / (m + 1)). The error is at most 2 units in the last place.
LEAT_PIXEL float LogOf(float x) {
  const uint32_t shifted = BitsOf(x) - 0x3f3504f3u;  // of √½
  const int32_t k = static_cast<int32_t>(shifted) >> 23;
  const float m = FloatOf((shifted & 0x007fffffu) + 0x3f3504f3u);
  const float s = (m - 1) / (m + 1);
  const float q = s * s;
  const float series =
      1 + q * (1.0f / 3 + q * (0.2f + q * (1.0f / 7 + q * (1.0f / 9))));
  return static_cast<float>(k) * 0.693147181f + 2 * s * series;
}

// Makes two normally distributed numbers, mean 0 and deviation 1, from two
// words: a point in the plane whose radius comes from `a` and whose angle comes
// from `b` (Box and Muller, 1958). 23 bits of the radius: up to 5.77
// deviations.
LEAT_PIXEL void NormalPair(uint32_t a, uint32_t b, float* x, float* y) {
  const float u = (static_cast<float>(a >> 9) + 0.5f) * 0x1.0p-23f;  // (0, 1)
  const float radius = sqrtf(-2 * LogOf(u));
  // The angle within the first quadrant, from its middle; two more bits are the
  // signs.
  const auto part = static_cast<int32_t>((b & 0x3fffffffu) >> 6);
  const float angle =
      (static_cast<float>(part) * 0x1.0p-24f - 0.5f) * 1.57079633f;
  const float q = angle * angle;
  const float sine =
      angle * (1 - q * (1.0f / 6 - q * (1.0f / 120 - q * (1.0f / 5040))));
  const float cosine =
      1 - q * (0.5f - q * (1.0f / 24 - q * (1.0f / 720 - q * (1.0f / 40320))));
  const float scaled = radius * 0.707106781f;
  *x = FloatOf(BitsOf(scaled * (cosine - sine)) ^ (b & 0x80000000u));
  *y = FloatOf(BitsOf(scaled * (cosine + sine)) ^ ((b << 1) & 0x80000000u));
}

// The distribution that a noise operator draws from.
enum class NoiseKind : uint8_t { kNormal, kShot, kSaltAndPepper };

// The number of events of a Poisson process with the expectation `mean`. `none`
// is exp(-mean), for a mean below kManyEvents.
inline constexpr float kManyEvents = 64;

LEAT_PIXEL double NoEvents(float mean) {
  if (!(mean < kManyEvents)) return 0;
  const double root = ExactExp(-static_cast<double>(mean) / 4);
  return root * root * root * root;
}

// Inverts the distribution function, from 0 on. REQUIRES: mean < kManyEvents.
LEAT_PIXEL float FewEvents(float mean, double none, uint32_t word) {
  const double u = (static_cast<double>(word) + 0.5) * 0x1.0p-32;
  double chance = none, sum = none;
  float events = 0;
  while (u >= sum && events < 4 * kManyEvents) {
    events += 1;
    chance = chance * static_cast<double>(mean) / static_cast<double>(events);
    sum += chance;
  }
  return events;
}

// Draws from the normal distribution with its first correction for skewness
// (Cornish and Fisher, 1938).
LEAT_PIXEL float ManyEvents(float mean, uint32_t a, uint32_t b) {
  float z, unused;
  NormalPair(a, b, &z, &unused);
  const float events = mean + sqrtf(mean) * z + (z * z - 1) / 6;
  // Rounds, where that makes a difference: 2^23 leaves no room for a fraction.
  if (!(events < 0x1p22f)) return events;
  return events <= 0 ? 0 : (events + 0x1p23f) - 0x1p23f;
}

}  // namespace leat::worker
