// SPDX-License-Identifier: Apache-2.0
#include "worker/image/resample/kernels.h"

#include <cstring>

#include "worker/image/formulas/pixel.h"

namespace leat::worker {
namespace {

// Returns one channel of one output pixel.
uint8_t Weighted(const uint8_t* first, size_t step, const int16_t* weights,
                 int taps, int bits) {
  int32_t sum = RoundingTerm(bits);
  for (int t = 0; t < taps; ++t) sum = AddTap(sum, first[t * step], weights[t]);
  return FinishTaps(sum, bits);
}

void HorizontalRgbx(const ResampleTable& table, int base,
                    const uint8_t* const in[kRowsAtOnce],
                    uint8_t* const out[kRowsAtOnce]) {
  for (int row = 0; row < kRowsAtOnce; ++row)
    for (int x = 0; x < table.size(); ++x) {
      const ResampleTable::Entry& entry = table.entry(x);
      const uint8_t* first = in[row] + size_t{4} * (entry.start - base);
      for (int c = 0; c < 3; ++c)
        out[row][3 * x + c] =
            Weighted(first + c, 4, table.weights(x), entry.taps, table.bits());
    }
}

void HorizontalGray(const ResampleTable& table, int base, const uint8_t* in,
                    uint8_t* out) {
  for (int x = 0; x < table.size(); ++x) {
    const ResampleTable::Entry& entry = table.entry(x);
    out[x] = Weighted(in + (entry.start - base), 1, table.weights(x),
                      entry.taps, table.bits());
  }
}

void Vertical(const uint8_t* const* rows, const int16_t* weights, int taps,
              int bits, size_t bytes, uint8_t* out) {
  for (size_t i = 0; i < bytes; ++i) {
    int32_t sum = RoundingTerm(bits);
    for (int t = 0; t < taps; ++t) sum = AddTap(sum, rows[t][i], weights[t]);
    out[i] = FinishTaps(sum, bits);
  }
}

void Compact(const uint8_t* in, size_t pixels, uint8_t* out) {
  for (size_t i = 0; i < pixels; ++i) memcpy(out + 3 * i, in + 4 * i, 3);
}

void Expand(const uint8_t* in, size_t pixels, uint8_t* out) {
  for (size_t i = 0; i < pixels; ++i) {
    memcpy(out + 4 * i, in + 3 * i, 3);
    out[4 * i + 3] = 255;
  }
}

}  // namespace

const Kernels& ScalarKernels() {
  static constexpr Kernels kKernels = {"scalar", HorizontalRgbx, HorizontalGray,
                                       Vertical, Compact,        Expand};
  return kKernels;
}

const Kernels& BestKernels() {
  static const Kernels& best =
      Avx2Kernels() != nullptr ? *Avx2Kernels() : ScalarKernels();
  return best;
}

}  // namespace leat::worker
