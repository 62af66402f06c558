// SPDX-License-Identifier: Apache-2.0
#include "worker/image/resample/dali_loops.h"

#include <algorithm>
#include <cstring>

#include "worker/image/base/simd.h"
#include "worker/image/formulas/dali_pixel.h"

namespace leat::worker {
namespace {

// Sums of this many columns are in progress at once.
constexpr size_t kTile = 64;

struct Widen {
  LEAT_BODY static void Run(const uint8_t* __restrict in, size_t count,
                            float* __restrict out) {
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]);
  }
};

template <class T>
LEAT_BODY void SumTile(const T* const* rows, const float* weights, int taps,
                       size_t at, size_t count, float* __restrict sums) {
  for (size_t i = 0; i < count; ++i) sums[i] = 0;
  for (int t = 0; t < taps; ++t) {
    const T* __restrict row = rows[t] + at;
    const float weight = weights[t];
    for (size_t i = 0; i < count; ++i)
      sums[i] = AddDaliTap(sums[i], static_cast<float>(row[i]), weight);
  }
}

// Calls use(at, count, sums) for each tile.
template <class T, class Use>
LEAT_BODY void ForTiles(const T* const* rows, const float* weights, int taps,
                        size_t count, Use use) {
  alignas(32) float sums[kTile];
  size_t at = 0;
  for (; at + kTile <= count; at += kTile) {
    SumTile(rows, weights, taps, at, kTile, sums);
    use(at, kTile, sums);
  }
  if (at == count) return;
  SumTile(rows, weights, taps, at, count - at, sums);
  use(at, count - at, sums);
}

struct DownBytes {
  LEAT_BODY static void Run(const uint8_t* const* rows, const float* weights,
                            int taps, size_t count, float* out) {
    ForTiles(
        rows, weights, taps, count,
        [&](size_t at, size_t some, const float* sums) __attribute__((
            always_inline)) { memcpy(out + at, sums, some * sizeof(float)); });
  }
};

struct DownFloats {
  LEAT_BODY static void Run(const float* const* rows, const float* weights,
                            int taps, size_t count, uint8_t* __restrict out) {
    ForTiles(
        rows, weights, taps, count,
        [&](size_t at, size_t some, const float* sums)
            __attribute__((always_inline)) {
              for (size_t i = 0; i < some; ++i)
                out[at + i] = FinishDaliTaps(sums[i]);
            });
  }
};

// The channels of a pixel, and the floats after them if it has fewer than four.
typedef float Four __attribute__((vector_size(16)));

struct Across {
  LEAT_BODY static void Run(const float* in, const int32_t* starts,
                            const float* weights, int taps, size_t count,
                            size_t in_step, size_t out_step, float* out) {
    for (size_t x = 0; x < count; ++x, weights += taps, out += out_step) {
      const float* pixel = in + static_cast<ptrdiff_t>(starts[x]) *
                                    static_cast<ptrdiff_t>(in_step);
      Four sum = {0, 0, 0, 0};
      for (int t = 0; t < taps; ++t, pixel += in_step) {
        Four value;
        memcpy(&value, pixel, sizeof value);
        const Four product = value * weights[t];
        sum = sum + product;
      }
      memcpy(out, &sum, sizeof sum);
    }
  }
};

struct Finish {
  LEAT_BODY static void Run(const float* __restrict in, size_t count,
                            uint8_t* __restrict out) {
    for (size_t i = 0; i < count; ++i) out[i] = FinishDaliTaps(in[i]);
  }
};

}  // namespace

const DaliLoops& PlainDaliLoops() {
  static constexpr DaliLoops kLoops = {Plain<Widen>::Run, Plain<DownBytes>::Run,
                                       Plain<DownFloats>::Run,
                                       Plain<Across>::Run, Plain<Finish>::Run};
  return kLoops;
}

const DaliLoops& BestDaliLoops() {
  static constexpr DaliLoops kAvx2 = {Avx2<Widen>::Run, Avx2<DownBytes>::Run,
                                      Avx2<DownFloats>::Run, Avx2<Across>::Run,
                                      Avx2<Finish>::Run};
  static const DaliLoops& best = HasAvx2() ? kAvx2 : PlainDaliLoops();
  return best;
}

}  // namespace leat::worker
