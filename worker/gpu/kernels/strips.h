// SPDX-License-Identifier: Apache-2.0
//
// Strips: kStripRows pixels, one above the other, computed by one thread of a
// kernel.
//
// Each input row's horizontal sum is computed once, rounded to a byte, and
// added to those pixels of the strip that it is a tap of. These are the two
// passes of the CPU operators, with their arithmetic
// (worker/image/formulas/pixel.h), so the bytes are the same. Neighbouring
// threads have neighbouring columns.
//
// C++ and CUDA compile this file. Blocks come from FusedGroup and are trusted.
#pragma once

#include <cstdint>

#include "worker/gpu/kernels/block_access.h"
#include "worker/gpu/layout/fused_descriptor.h"
#include "worker/image/formulas/dali_pixel.h"
#include "worker/image/formulas/pixel.h"

namespace leat::worker {

// Returns the weighted sum of a row of pixels from `first` on.
template <int kChannels>
LEAT_PIXEL void HorizontalSum(const FusedRow& row, const uint8_t* first,
                              const int16_t* weights, uint32_t positions,
                              int taps, uint8_t pixel[kChannels]) {
  int32_t sums[kChannels];
  for (int c = 0; c < kChannels; ++c)
    sums[c] = RoundingTerm(row.horizontal.bits);
  for (int t = 0; t < taps; ++t) {
    const int16_t weight = *weights;
    for (int c = 0; c < kChannels; ++c)
      sums[c] = AddTap(sums[c], first[c * row.step_c], weight);
    first += row.step_x;
    weights += positions;
  }
  for (int c = 0; c < kChannels; ++c)
    pixel[c] = FinishTaps(sums[c], row.horizontal.bits);
}

// Computes pixels (x, y) … (x, y + count - 1) of a view that resamples.
template <int kChannels>
LEAT_PIXEL void ResampleStrip(const uint8_t* block, const FusedView& view,
                              const FusedRow& row, uint32_t x, uint32_t y,
                              uint32_t count,
                              uint8_t strip[kStripRows][kChannels]) {
  const FusedEntry across =
      InBlock<FusedEntry>(block, row.horizontal.entries_at)[x];
  const int16_t* across_weights =
      InBlock<int16_t>(block, row.horizontal.weights_at) + x;
  const FusedEntry* down =
      InBlock<FusedEntry>(block, row.vertical.entries_at) + y;
  const int16_t* down_weights =
      InBlock<int16_t>(block, row.vertical.weights_at) +
      y * static_cast<uint32_t>(row.vertical.stride);
  const uint8_t* const source =
      AtAddress(row.source) + across.start * row.step_x;

  int32_t start[kStripRows], end[kStripRows];
  int32_t sums[kStripRows][kChannels];
  int32_t first = down[0].start, last = down[0].start;
  for (uint32_t k = 0; k < kStripRows; ++k) {
    start[k] = end[k] = 0;  // beyond the view: it has no taps
    if (k < count) {
      start[k] = down[k].start;
      end[k] = start[k] + down[k].taps;
    }
    if (k < count && start[k] < first) first = start[k];
    if (k < count && end[k] > last) last = end[k];
    for (int c = 0; c < kChannels; ++c)
      sums[k][c] = RoundingTerm(row.vertical.bits);
  }
  for (int32_t r = first; r < last; ++r) {
    bool needed = false;
    for (uint32_t k = 0; k < kStripRows; ++k)
      needed = needed || (r >= start[k] && r < end[k]);
    if (!needed) continue;
    uint8_t pixel[kChannels];
    HorizontalSum<kChannels>(row, source + r * row.step_y, across_weights,
                             view.width, across.taps, pixel);
    for (uint32_t k = 0; k < kStripRows; ++k) {
      if (r < start[k] || r >= end[k]) continue;
      const int16_t weight =
          down_weights[k * row.vertical.stride + r - start[k]];
      for (int c = 0; c < kChannels; ++c)
        sums[k][c] = AddTap(sums[k][c], pixel[c], weight);
    }
  }
  for (uint32_t k = 0; k < kStripRows; ++k)
    for (int c = 0; c < kChannels; ++c)
      strip[k][c] = FinishTaps(sums[k][c], row.vertical.bits);
}

// The taps of an axis of rule "dali" for one position.
struct DaliTaps {
  int32_t start, taps, last;
  const float* weights;

  LEAT_PIXEL int32_t At(int32_t tap) const {
    const int32_t at = start + tap;
    return at < 0 ? 0 : at > last ? last : at;
  }
};
LEAT_PIXEL DaliTaps DaliTapsAt(const uint8_t* block, const FusedAxis& axis,
                               uint32_t position) {
  return {InBlock<int32_t>(block, axis.entries_at)[position], axis.stride,
          axis.inputs - 1,
          InBlock<float>(block, axis.weights_at) +
              uint64_t{position} * static_cast<uint32_t>(axis.stride)};
}

// Returns the sum over `outer` of the sums over `inner`; the steps are those
// between their pixels.
template <int kChannels>
LEAT_PIXEL void DaliPixel(const uint8_t* source, int32_t step_c,
                          const DaliTaps& outer, int64_t outer_step,
                          const DaliTaps& inner, int64_t inner_step,
                          uint8_t pixel[kChannels]) {
  float sums[kChannels];
  for (int c = 0; c < kChannels; ++c) sums[c] = 0;
  for (int32_t o = 0; o < outer.taps; ++o) {
    const uint8_t* const line = source + outer.At(o) * outer_step;
    float own[kChannels];
    for (int c = 0; c < kChannels; ++c) own[c] = 0;
    for (int32_t i = 0; i < inner.taps; ++i) {
      const uint8_t* const from = line + inner.At(i) * inner_step;
      for (int c = 0; c < kChannels; ++c)
        own[c] = AddDaliTap(own[c], static_cast<float>(from[c * step_c]),
                            inner.weights[i]);
    }
    for (int c = 0; c < kChannels; ++c)
      sums[c] = AddDaliTap(sums[c], own[c], outer.weights[o]);
  }
  for (int c = 0; c < kChannels; ++c) pixel[c] = FinishDaliTaps(sums[c]);
}

// The same for a view by rule "dali". No memory lies between the passes: the
// first pass's sums are computed again for every pixel.
template <int kChannels>
LEAT_PIXEL void DaliStrip(const uint8_t* block, const FusedRow& row, uint32_t x,
                          uint32_t y, uint32_t count,
                          uint8_t strip[kStripRows][kChannels]) {
  const uint8_t* const source = AtAddress(row.source);
  const DaliTaps across = DaliTapsAt(block, row.horizontal, x);
  for (uint32_t k = 0; k < kStripRows; ++k) {
    if (k >= count) break;
    const DaliTaps down = DaliTapsAt(block, row.vertical, y + k);
    if (row.sampling == FusedSampling::kDaliAcrossFirst)
      DaliPixel<kChannels>(source, row.step_c, down, row.step_y, across,
                           row.step_x, strip[k]);
    else
      DaliPixel<kChannels>(source, row.step_c, across, row.step_x, down,
                           row.step_y, strip[k]);
  }
}

template <int kChannels>
LEAT_PIXEL void CopyStrip(const FusedRow& row, uint32_t x, uint32_t y,
                          uint32_t count,
                          uint8_t strip[kStripRows][kChannels]) {
  const uint8_t* const source =
      AtAddress(row.source) + static_cast<int32_t>(x) * row.step_x;
  for (uint32_t k = 0; k < kStripRows; ++k) {
    if (k >= count) break;
    const uint8_t* from = source + static_cast<int32_t>(y + k) * row.step_y;
    for (int c = 0; c < kChannels; ++c) strip[k][c] = from[c * row.step_c];
  }
}

}  // namespace leat::worker
