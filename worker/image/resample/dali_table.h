// SPDX-License-Identifier: Apache-2.0
//
// DaliTable: what rule "dali" makes each output position along one axis of:
// formulas/dali_pixel.h, with the filters, the supports and the order of
// float32 operations of DALI's CPU operators.
//
// Filters are tables of points: linear of 3, gaussian of 65, cubic of 129,
// lanczos3 of 193. Shrinking with antialiasing widens them by the scale; at
// most 8192 taps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/image/resample/table.h"

namespace leat::worker {

// Thread-compatible. Reused for image after image; its memory grows and stays.
class DaliTable {
 public:
  // REQUIRES: in, out in [1, 2^20]; the middle of every output lies in [0, in].
  void SetAxis(const ResampleAxis& axis);
  bool nearest() const { return points_.empty(); }
  // How many inputs an output takes.
  int taps() const { return taps_; }
  // Inputs that may be tapped, as far as they exist: what the order of the
  // passes is chosen by.
  int reach() const { return to_ - from_; }
  int out() const { return axis_.out; }

  // For outputs [first, first + count), in reverse order if `reversed`.
  // `shifted`: places are counted from the first input in reach, as those of
  // the second pass are. `summed`: nearest places are summed up, as a column's
  // are. The table that is there is kept, if it is this one.
  void Build(bool shifted, bool summed, int first, int count, bool reversed);

  int size() const { return static_cast<int>(starts_.size()); }
  // The first tap of each output. Those outside [0, in) are the edge's. A
  // nearest one lies inside.
  std::span<const int32_t> starts() const { return starts_; }
  // taps() for each output.
  const float* weights() const { return weights_.data(); }
  // The inputs tapped: [first_input, end_input), inside [0, in).
  int first_input() const { return first_input_; }
  int end_input() const { return end_input_; }
  // Taps before the first input, and behind the last one.
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
  std::span<const float> points_;  // of the filter; none: nearest
  float anchor_ = 0, scale_ = 1;   // of the filter
  int taps_ = 1;
  int from_ = 0, to_ = 1;
  Contents contents_;  // count 0: none
  std::vector<int32_t> starts_;
  std::vector<float> weights_;
  int first_input_ = 0, end_input_ = 0;
  int taps_before_ = 0, taps_behind_ = 0;
};

// The rows' pass comes first: where fewer floats are made, and fewer taps
// taken.
bool AcrossFirst(const DaliTable& across, const DaliTable& down);

}  // namespace leat::worker
