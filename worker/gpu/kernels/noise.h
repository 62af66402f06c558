// SPDX-License-Identifier: Apache-2.0
//
// Stages of noise: an element draws those words of the sample's generator that
// the loop on the CPU would draw for it. C++ and CUDA compile this file.
#pragma once

#include <cstdint>

#include "core/random/philox_block.h"
#include "worker/gpu/kernels/map.h"
#include "worker/image/formulas/draws.h"

namespace leat::worker {

// Words [2 × pair, 2 × pair + 2) of the generator.
struct NoiseWords {
  uint32_t a, b;
};
LEAT_PIXEL NoiseWords NoisePair(const NoiseRow& row, uint32_t pair) {
  const PhiloxWords block =
      PhiloxBlock({{row.counter[0] + pair / 2, row.counter[1], row.counter[2],
                    row.counter[3]}},
                  row.key[0], row.key[1]);
  const uint32_t at = pair % 2 * 2;
  return {block.word[at], block.word[at + 1]};
}

// Raises a value by a number of events, each worth `factor`.
LEAT_PIXEL float Shot(float value, float factor, const NoiseWords& words) {
  const float mean = (value > 0 ? value : 0) / factor;
  if (!(mean < kManyEvents)) return factor * ManyEvents(mean, words.a, words.b);
  return factor * FewEvents(mean, NoEvents(mean), words.a);
}

LEAT_PIXEL float WithNormal(const NoiseRow& row, uint32_t element,
                            float value) {
  const NoiseWords words = NoisePair(row, element / 2);
  float x, y;
  NormalPair(words.a, words.b, &x, &y);
  return value + (row.mean + row.deviation * (element % 2 == 0 ? x : y));
}

// Computes one element.
LEAT_PIXEL void NoiseThread(uint64_t rows, uint32_t thread, uint32_t index) {
  const NoiseRow& row =
      reinterpret_cast<const NoiseRow*>(AtAddress(rows))[index];
  if (row.head.out == 0 || thread >= row.head.threads) return;
  const DType dtype = row.head.dtype;
  const uint32_t bytes = StageSizeOf(dtype);
  const uint64_t from = row.in + uint64_t{thread} * bytes;
  const uint64_t to = row.head.out + uint64_t{thread} * bytes;
  if (row.kind == NoiseKind::kSaltAndPepper) {
    const uint32_t word = thread / row.group;
    const NoiseWords words = NoisePair(row, word / 2);
    const uint32_t drawn = word % 2 == 0 ? words.a : words.b;
    return CopyStored(drawn >= row.noisy   ? from
                      : drawn < row.salted ? row.salt
                                           : row.pepper,
                      dtype, to);
  }
  if (row.kind == NoiseKind::kShot && !(row.factor > 0))
    return CopyStored(from, dtype, to);
  const float value = ValueAs<float>(LoadValue(from, dtype));
  StoreValue(
      ValueOf(OneNan(row.kind == NoiseKind::kNormal
                         ? WithNormal(row, thread, value)
                         : Shot(value, row.factor, NoisePair(row, thread)))),
      dtype, to);
}

}  // namespace leat::worker
