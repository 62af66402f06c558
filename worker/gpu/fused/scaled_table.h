// SPDX-License-Identifier: Apache-2.0
//
// ScaledTable: a resampling table for an image that was decoded at ½, ¼ or ⅛.
//
// A pixel of the smaller image represents 2, 4 or 8 pixels per side of the
// whole one: it gets the sum of their weights. So there is no second geometry:
// crops that begin within a pixel, the filter's support and its precision are
// those of the table for the whole image. Example, ½, an entry of four pixels
// from position 1 on: weights 1 3 3 1 become 1 6 1.
//
// Sums may exceed 16 bits; then all lose as many fraction bits as necessary, by
// rounding running sums, so that they sum to exactly 1 << bits() again.
//
// The pixel of an incomplete group, at the image's end, is not read.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/image/resample/geometry.h"
#include "worker/image/resample/table.h"

namespace leat::worker {

// Thread-compatible. Reused; its memory only grows.
class ScaledTable {
 public:
  using Entry = ResampleTable::Entry;

  // `table` counts its inputs from `origin` of the axis.
  void Build(const ResampleTable& table, int64_t origin,
             const ScaledAxis& axis);

  int size() const { return static_cast<int>(entries_.size()); }
  // Inputs are counted from the first one of the shorter axis.
  const Entry& entry(int i) const { return entries_[i]; }
  const int16_t* weights(int i) const {
    return weights_.data() + static_cast<size_t>(i) * stride_;
  }
  int bits() const { return bits_; }
  // At most that of the given table.
  int max_taps() const { return max_taps_; }
  int first_input() const { return first_input_; }
  int end_input() const { return end_input_; }

 private:
  void Quantise(int i, int lost_bits);

  std::vector<Entry> entries_;
  std::vector<int32_t> sums_;  // stride_ per entry
  std::vector<int16_t> weights_;
  int stride_ = 0;
  int bits_ = 0;
  int max_taps_ = 0;
  int first_input_ = 0;
  int end_input_ = 0;
};

}  // namespace leat::worker
