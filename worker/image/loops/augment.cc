// SPDX-License-Identifier: Apache-2.0
//
// Each body is written once and compiled twice; the compiler vectorises it. No
// step depends on the vectors' width, so the bits are the same.
#include "worker/image/loops/augment.h"

#include <algorithm>
#include <cstddef>

#include "worker/image/base/simd.h"

namespace leat::worker {
namespace {

struct Mask {
  LEAT_BODY static void Run(const uint8_t* in, size_t count, uint8_t mask,
                            uint8_t* out) {
    for (size_t i = 0; i < count; ++i)
      out[i] = static_cast<uint8_t>(in[i] & mask);
  }
};

struct Solarize {
  LEAT_BODY static void Run(const uint8_t* in, size_t count, int32_t threshold,
                            uint8_t* out) {
    for (size_t i = 0; i < count; ++i) out[i] = Solarized(in[i], threshold);
  }
};

struct SolarizeAdd {
  LEAT_BODY static void Run(const uint8_t* in, size_t count, int32_t shift,
                            uint8_t* out) {
    for (size_t i = 0; i < count; ++i) out[i] = SolarizedByAdding(in[i], shift);
  }
};

struct SharpenRow {
  LEAT_BODY static void Run(const uint8_t* above, const uint8_t* row,
                            const uint8_t* below, size_t count, size_t step,
                            SharpnessWeights weights, uint8_t* __restrict out) {
    // Signed, since the neighbours of the first pixel lie before the pointers.
    const auto side = static_cast<ptrdiff_t>(step);
    for (ptrdiff_t i = 0; i < static_cast<ptrdiff_t>(count); ++i) {
      const int32_t neighbours = above[i - side] + above[i] + above[i + side] +
                                 row[i - side] + row[i + side] +
                                 below[i - side] + below[i] + below[i + side];
      out[i] = Sharpened(row[i], neighbours, weights);
    }
  }
};

int64_t Reflected(int64_t at, int64_t size) {
  if (size == 1) return 0;
  return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
}

template <int kChannels>
void Count(const uint8_t* in, size_t pixels, ByteCounts* counts) {
  for (; pixels > 0; --pixels, in += kChannels)
    for (int c = 0; c < kChannels; ++c) ++(*counts)[c][in[c]];
}

template <int kChannels>
void LookUp(const uint8_t* in, size_t pixels, const ByteTables& tables,
            uint8_t* out) {
  for (; pixels > 0; --pixels, in += kChannels, out += kChannels)
    for (int c = 0; c < kChannels; ++c) out[c] = tables[c][in[c]];
}

// Calls use.operator()<channels>(pixels).
template <class Use>
void ByChannels(const Tensor& image, Use use) {
  const auto pixels = static_cast<size_t>(image.dims[0] * image.dims[1]);
  switch (image.dims[2]) {
    case 1:
      return use.template operator()<1>(pixels);
    case 2:
      return use.template operator()<2>(pixels);
    case 3:
      return use.template operator()<3>(pixels);
    default:
      return use.template operator()<4>(pixels);
  }
}

}  // namespace

const AugmentLoops& PlainAugmentLoops() {
  static constexpr AugmentLoops kLoops = {
      Plain<Mask>::Run, Plain<Solarize>::Run, Plain<SolarizeAdd>::Run,
      Plain<SharpenRow>::Run};
  return kLoops;
}

const AugmentLoops& BestAugmentLoops() {
  static constexpr AugmentLoops kAvx2 = {Avx2<Mask>::Run, Avx2<Solarize>::Run,
                                         Avx2<SolarizeAdd>::Run,
                                         Avx2<SharpenRow>::Run};
  static const AugmentLoops& best = HasAvx2() ? kAvx2 : PlainAugmentLoops();
  return best;
}

void Sharpen(const Tensor& in, float factor, const AugmentLoops& loops,
             const Tensor& out) {
  const int64_t height = in.dims[0], width = in.dims[1];
  const auto channels = static_cast<size_t>(in.dims[2]);
  const size_t pitch = static_cast<size_t>(width) * channels;
  const SharpnessWeights weights = SharpnessOf(factor);
  const auto* const pixels = reinterpret_cast<const uint8_t*>(in.data);
  auto* to = reinterpret_cast<uint8_t*>(out.data);
  for (int64_t y = 0; y < height; ++y, to += pitch) {
    const auto row = [&](int64_t at) {
      return pixels + static_cast<size_t>(Reflected(at, height)) * pitch;
    };
    const uint8_t* const rows[] = {row(y - 1), row(y), row(y + 1)};
    const auto edge = [&](int64_t x) {
      for (size_t c = 0; c < channels; ++c) {
        int32_t sum = 0;
        for (const uint8_t* from : rows)
          for (int64_t dx = -1; dx <= 1; ++dx)
            sum +=
                from[static_cast<size_t>(Reflected(x + dx, width)) * channels +
                     c];
        const size_t i = static_cast<size_t>(x) * channels + c;
        to[i] = Sharpened(rows[1][i], sum - rows[1][i], weights);
      }
    };
    edge(0);
    if (width > 2)
      loops.sharpen(rows[0] + channels, rows[1] + channels, rows[2] + channels,
                    pitch - 2 * channels, channels, weights, to + channels);
    if (width > 1) edge(width - 1);
  }
}

void CountBytes(const Tensor& in, ByteCounts* counts) {
  for (auto& channel : *counts) channel.fill(0);
  const auto* const pixels = reinterpret_cast<const uint8_t*>(in.data);
  ByChannels(in, [&]<int kChannels>(size_t count) {
    Count<kChannels>(pixels, count, counts);
  });
}

void LookUpBytes(const Tensor& in, const ByteTables& tables, std::byte* out) {
  const auto* const pixels = reinterpret_cast<const uint8_t*>(in.data);
  ByChannels(in, [&]<int kChannels>(size_t count) {
    LookUp<kChannels>(pixels, count, tables, reinterpret_cast<uint8_t*>(out));
  });
}

}  // namespace leat::worker
