// SPDX-License-Identifier: Apache-2.0
//
// ResampleTable: the input positions and weights of each output position along
// one axis.
//
// Pillow's geometry: output i lies at (i + 0.5) × in / out; the filter is
// widened by the scale when shrinking with antialiasing; taps outside the image
// are left out and the others' weights normalised. Weights are int16 with
// bits() fraction bits, the most that keep the largest one in 16 bits (14 to
// 21), and sum to exactly 1 << bits(): each is the difference of two rounded
// running sums. They are computed in double with exactly specified operations
// only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace leat::worker {

enum class Filter : uint8_t { kNearest, kLinear, kCubic, kLanczos3, kGaussian };
// Parses "nearest", "linear", "cubic", "lanczos3", "gaussian".
std::optional<Filter> ParseFilter(std::string_view name);

// `out` positions spread over [begin, end) of an axis of `in`. These are
// coordinates of pixels' edges, so the whole axis is [0, in). Taps beyond
// [begin, end) count; taps beyond the axis do not exist.
struct ResampleAxis {
  int in = 1, out = 1;
  double begin = 0, end = 1;
  Filter filter = Filter::kLinear;
  bool antialias = true;

  static ResampleAxis Whole(int in, int out, Filter filter, bool antialias) {
    return {in, out, 0, static_cast<double>(in), filter, antialias};
  }
  // Returns how many input positions there are per output position.
  double step() const { return (end - begin) / out; }
  friend bool operator==(const ResampleAxis&, const ResampleAxis&) = default;
};

// Thread-compatible. Reused for image after image; its memory only grows.
class ResampleTable {
 public:
  // For every entry, start + max_taps() ≤ end_input().
  struct Entry {
    int32_t start = 0;  // first input position
    int32_t taps = 0;   // > 0
  };

  // Returns a bound on the taps of any entry.
  static int MostTaps(const ResampleAxis& axis);

  // Builds the table for outputs [first, first + count) of the axis, in reverse
  // order if `reversed`. If the existing table is the same, it is kept.
  // REQUIRES: in, out in [1, 2^20]; first + count ≤ out; count > 0; the middle
  // of every output lies in [0, in].
  void Build(const ResampleAxis& axis, int first, int count, bool reversed);

  int size() const { return size_; }
  // The last entry is repeated up to a multiple of 4, for SIMD.
  const Entry& entry(int i) const { return entries_[i]; }
  // Returns stride() weights; those after the taps are 0.
  const int16_t* weights(int i) const {
    return weights_.data() + static_cast<size_t>(i) * stride_;
  }
  int stride() const { return stride_; }
  // Returns max_taps(), rounded up to an even number; ≤ stride().
  int padded_taps() const { return (max_taps_ + 1) & ~1; }
  int bits() const { return bits_; }
  // Returns the most taps of any entry.
  int max_taps() const { return max_taps_; }
  // All inputs that any entry reads: [first_input, end_input).
  int first_input() const { return first_input_; }
  int end_input() const { return end_input_; }
  // True if every output is one input of full weight; copies_a_run: and if
  // these inputs follow one another.
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

  Contents contents_;  // count 0: no table
  std::vector<Entry> entries_;
  std::vector<int16_t> weights_;
  // exact_stride_ weights per entry, and for one more
  std::vector<double> exact_;
  int stride_ = 0;
  int exact_stride_ = 0;
  int bits_ = 14;
  int max_taps_ = 0;
  int first_input_ = 0;
  int end_input_ = 0;
  int size_ = 0;
  bool copies_ = false;
  bool copies_a_run_ = false;
  double largest_ = 0;  // the largest weight
};

}  // namespace leat::worker
