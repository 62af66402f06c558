// SPDX-License-Identifier: Apache-2.0
//
// Kernels: the inner loops over pixels. The scalar set is the definition; sets
// for instruction sets give the same bits and are chosen at run time.
//
// Pixels of four bytes are R, G, B and an undefined byte; of three bytes R, G,
// B; of one byte gray.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/image/base/pixel_rows.h"
#include "worker/image/resample/table.h"

namespace leat::worker {

// Rows that the horizontal pass takes at once: they share loads of weights.
inline constexpr int kRowsAtOnce = 4;

struct Kernels {
  const char* name;
  // Horizontal pass from rows of 4-byte pixels to rows of 3-byte ones:
  // out[i][x] = entry x of the table on in[i], whose first pixel is input
  // `base`.
  void (*horizontal_rgbx)(const ResampleTable& table, int base,
                          const uint8_t* const in[kRowsAtOnce],
                          uint8_t* const out[kRowsAtOnce]);
  // The same for one row of gray pixels.
  void (*horizontal_gray)(const ResampleTable& table, int base,
                          const uint8_t* in, uint8_t* out);
  // out[i] = weighted sum over the taps of rows[t][i]; i < bytes. Never writes
  // beyond. REQUIRES: an odd number of taps is followed by a readable row and a
  // weight of 0.
  void (*vertical)(const uint8_t* const* rows, const int16_t* weights, int taps,
                   int bits, size_t bytes, uint8_t* out);
  // Convert 4-byte pixels to 3-byte ones, never writing beyond, and back.
  void (*compact)(const uint8_t* in, size_t pixels, uint8_t* out);
  void (*expand)(const uint8_t* in, size_t pixels, uint8_t* out);
};

const Kernels& ScalarKernels();
// Returns nullptr if this processor has no AVX2.
const Kernels* Avx2Kernels();
// Returns the fastest kernels for this processor.
const Kernels& BestKernels();

}  // namespace leat::worker
