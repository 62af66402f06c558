// SPDX-License-Identifier: Apache-2.0
//
// ResampleTable: for each output position along one axis, which input
// positions it is made of and with which weights.
//
// Pillow's geometry: output i lies at (i + 0.5) × in / out; the filter is
// widened by the scale when shrinking with antialiasing; taps outside the image
// are left out and the others' weights normalised. Weights are int16 with
// bits() fraction bits, the most that keep the largest one in 16 bits (14 to
// 21), and sum to exactly 1 << bits(): each is the difference of two rounded
// running sums. Computed in double with exactly specified operations only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace leat::worker {

enum class Filter : uint8_t { kNearest, kLinear, kCubic, kLanczos3, kGaussian };
// "nearest", "linear", "cubic", "lanczos3", "gaussian".
std::optional<Filter> ParseFilter(std::string_view name);

// `out` positions spread over [begin, end) of an axis of `in`: places between
// pixels' edges, so that all of it is [0, in). Taps beyond [begin, end) count,
// those beyond the axis do not exist.
struct ResampleAxis {
  int in = 1, out = 1;
  double begin = 0, end = 1;
  Filter filter = Filter::kLinear;
  bool antialias = true;

  static ResampleAxis Whole(int in, int out, Filter filter, bool antialias) {
    return {in, out, 0, static_cast<double>(in), filter, antialias};
  }
  // Input positions an output position.
  double step() const { return (end - begin) / out; }
  friend bool operator==(const ResampleAxis&, const ResampleAxis&) = default;
};

// Thread-compatible. Reused for image after image; its memory grows and stays.
class ResampleTable {
 public:
  // start + max_taps() ≤ end_input() for every entry.
  struct Entry {
    int32_t start = 0;  // first input position
    int32_t taps = 0;   // > 0
  };

  // A bound on the taps of any entry.
  static int MostTaps(const ResampleAxis& axis);

  // The table for outputs [first, first + count) of the axis, in reverse order
  // if `reversed`. The one that is there is kept, if it is this one.
  // REQUIRES: in, out in [1, 2^20]; first + count ≤ out; count > 0; the middle
  // of every output lies in [0, in].
  void Build(const ResampleAxis& axis, int first, int count, bool reversed);

  int size() const { return size_; }
  // The last entry is repeated up to a multiple of 4, for SIMD.
  const Entry& entry(int i) const { return entries_[i]; }
  // stride() weights; those after the taps are 0.
  const int16_t* weights(int i) const {
    return weights_.data() + static_cast<size_t>(i) * stride_;
  }
  int stride() const { return stride_; }
  // max_taps(), rounded up to an even number; ≤ stride().
  int padded_taps() const { return (max_taps_ + 1) & ~1; }
  int bits() const { return bits_; }
  // Most taps of an entry.
  int max_taps() const { return max_taps_; }
  // All inputs that any entry reads: [first_input, end_input).
  int first_input() const { return first_input_; }
  int end_input() const { return end_input_; }
  // Every output is one input of full weight; the inputs follow one another.
  bool copies() const { return copies_; }
  bool copies_a_run() const { return copies_a_run_; }
  size_t scratch_bytes() const;

 private:
  struct Contents {
    ResampleAxis axis;
    int first = 0, count = 0;
    bool reversed = false;
    friend bool operator==(const Contents&, const Contents&) = default;
  };

  void Quantise(int i);
  void KeepInside(int i);
  void PadToFour();
  void Weigh(double centre, double scale, int in, Filter filter, Entry* entry,
             double* weights);

  Contents contents_;  // count 0: none
  std::vector<Entry> entries_;
  std::vector<int16_t> weights_;
  std::vector<double> exact_;  // of each entry and one more, exact_stride_ each
  int stride_ = 0;
  int exact_stride_ = 0;
  int bits_ = 14;
  int max_taps_ = 0;
  int first_input_ = 0;
  int end_input_ = 0;
  int size_ = 0;
  bool copies_ = false;
  bool copies_a_run_ = false;
  double largest_ = 0;  // weight
};

}  // namespace leat::worker
