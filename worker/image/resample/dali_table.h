// SPDX-License-Identifier: Apache-2.0
//
// DaliTable: the taps and weights of each output position along one axis, by
// rule "dali": formulas/dali_pixel.h, with the filters, the supports and the
// order of float32 operations of DALI's CPU operators.
//
// Filters are tables of points: 3 for linear, 65 for gaussian, 129 for cubic,
// 193 for lanczos3. Shrinking with antialiasing widens them by the scale, to at
// most 8192 taps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/image/resample/table.h"

namespace leat::worker {

// Thread-compatible. Reused for image after image; its memory only grows.
class DaliTable {
 public:
  // REQUIRES: in, out in [1, 2^20]; the middle of every output lies in [0, in].
  void SetAxis(const ResampleAxis& axis);
  bool nearest() const { return points_.empty(); }
  // Returns how many inputs an output uses.
  int taps() const { return taps_; }
  // Returns how many existing inputs may be tapped; AcrossFirst compares by it.
  int reach() const { return to_ - from_; }
  int out() const { return axis_.out; }

  // Builds the table for outputs [first, first + count), in reverse order if
  // `reversed`. `shifted`: positions count from the first input in reach, as in
  // the second pass. `summed`: nearest positions are summed up, as for a
  // column. If the existing table is the same, it is kept.
  void Build(bool shifted, bool summed, int first, int count, bool reversed);

  int size() const { return static_cast<int>(starts_.size()); }
  // Returns the first tap of each output. Taps outside [0, in) are the edge's.
  // A nearest tap lies inside.
  std::span<const int32_t> starts() const { return starts_; }
  // Returns taps() weights per output.
  const float* weights() const { return weights_.data(); }
  // The inputs tapped: [first_input, end_input), inside [0, in).
  int first_input() const { return first_input_; }
  int end_input() const { return end_input_; }
  // How many taps lie before the first input, and after the last one.
  int taps_before() const { return taps_before_; }
  int taps_behind() const { return taps_behind_; }
  size_t scratch_bytes() const;

 private:
  struct Contents {
    ResampleAxis axis;
    int first = 0, count = 0;
    bool shifted = false, summed = false, reversed = false;
    friend bool operator==(const Contents&, const Contents&) = default;
  };

  void Rescale(float support);
  void Weigh(int x, float origin, int shift, int32_t* start, float* weights);

  ResampleAxis axis_;
  float origin_ = 0, step_ = 1;
  std::span<const float> points_;  // of the filter; empty: nearest
  float anchor_ = 0, scale_ = 1;   // of the filter
  int taps_ = 1;
  int from_ = 0, to_ = 1;
  Contents contents_;  // count 0: no table
  std::vector<int32_t> starts_;
  std::vector<float> weights_;
  int first_input_ = 0, end_input_ = 0;
  int taps_before_ = 0, taps_behind_ = 0;
};

// True if the pass over rows comes first: it does where fewer floats are made,
// and fewer taps used.
bool AcrossFirst(const DaliTable& across, const DaliTable& down);

}  // namespace leat::worker
