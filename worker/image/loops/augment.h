// SPDX-License-Identifier: Apache-2.0
//
// Loops over the bytes of an image for automatic augmentation, for processors
// with and without AVX2, with the same bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "worker/image/formulas/augment.h"
#include "worker/image/loops/tensor.h"

namespace leat::worker {

// Each loop works value by value; `out` may be `in`.
struct AugmentLoops {
  void (*mask)(const uint8_t* in, size_t count, uint8_t mask, uint8_t* out);
  void (*solarize)(const uint8_t* in, size_t count, int32_t threshold,
                   uint8_t* out);
  void (*solarize_add)(const uint8_t* in, size_t count, int32_t shift,
                       uint8_t* out);
  // Sharpens a row of pixels except the first and the last. A pixel has `step`
  // channels; `above`, `row` and `below` point to their second pixels. Not in
  // place.
  void (*sharpen)(const uint8_t* above, const uint8_t* row,
                  const uint8_t* below, size_t count, size_t step,
                  SharpnessWeights weights, uint8_t* out);
};

const AugmentLoops& PlainAugmentLoops();
// Returns the fastest loops for this processor.
const AugmentLoops& BestAugmentLoops();

// Beyond its edge the image is reflected, without repeating the edge. `in` and
// `out` have one shape, (height, width, channels), and share no memory.
void Sharpen(const Tensor& in, float factor, const AugmentLoops& loops,
             const Tensor& out);

inline constexpr int kMostChannels = 4;
// How often each value occurs, per channel.
using ByteCounts = std::array<std::array<uint32_t, 256>, kMostChannels>;
using ByteTables = std::array<std::array<uint8_t, 256>, kMostChannels>;

// REQUIRES: an image of 1 to 4 channels and less than 2^32 pixels.
void CountBytes(const Tensor& in, ByteCounts* counts);
// out = tables[channel][in]; `out` may be in's memory.
void LookUpBytes(const Tensor& in, const ByteTables& tables, std::byte* out);

}  // namespace leat::worker
