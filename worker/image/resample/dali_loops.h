// SPDX-License-Identifier: Apache-2.0
//
// Loops over rows for resampling by rule "dali", with the formulas of
// formulas/dali_pixel.h: one set for any processor and one for AVX2, with the
// same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leat::worker {

// Floats that must be readable after a row, and writable after the result of
// `across`.
inline constexpr size_t kDaliPadding = 8;

struct DaliLoops {
  // out[i] = in[i]; i < count.
  void (*widen)(const uint8_t* in, size_t count, float* out);
  // out[i] = the sum over the taps of rows[t][i] × weights[t].
  void (*down_bytes)(const uint8_t* const* rows, const float* weights, int taps,
                     size_t count, float* out);
  // The same, rounded to bytes.
  void (*down_floats)(const float* const* rows, const float* weights, int taps,
                      size_t count, uint8_t* out);
  // Pixel x of `out` = the sum over the taps t of pixel starts[x] + t of `in` ×
  // weights[x × taps + t]; x < count. Pixels have in_step floats in `in`, and
  // out_step ≤ 4 in `out`.
  void (*across)(const float* in, const int32_t* starts, const float* weights,
                 int taps, size_t count, size_t in_step, size_t out_step,
                 float* out);
  void (*finish)(const float* in, size_t count, uint8_t* out);
};

const DaliLoops& PlainDaliLoops();
// Returns the fastest loops for this processor.
const DaliLoops& BestDaliLoops();

}  // namespace leat::worker
