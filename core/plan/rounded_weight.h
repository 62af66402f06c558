// SPDX-License-Identifier: Apache-2.0
//
// RoundedWeight: the weight of a sample, rounded to ten significant bits, so
// that samples of about one weight are a group, and whole numbers say how the
// weights of groups compare.
//
// A weight w = m · 2^e, with m of at least ½ and less than 1, becomes
//
//     ⌊1024·m + ½⌋ · 2^(e − 10)
//
// which differs from w by less than 0.1 %. For example 0.1 becomes 819 · 2^-13,
// which is 0.0999756, and 0.75 stays what it is.
//
// A pure function; any thread may call it. The golden file is
// tests/golden/sample_weights.txt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat {

// The largest weight is at most so many times the smallest one over 0.
inline constexpr double kMaxWeightSpread = 1 << 20;

// kInvalidArgument: it is not a number of 0 to kMaxWeight (whole_weights.h).
// Names it by the `number` of its sample, and by the file `in`, if that is not
// "".
absl::Status CheckWeight(double weight, size_t number,
                         std::string_view in = "");

class RoundedWeight {
 public:
  // REQUIRES: CheckWeight(weight, …) is OK.
  static RoundedWeight Of(double weight);
  // Returns the weight of this key().
  static RoundedWeight FromKey(uint32_t key) { return RoundedWeight(key); }

  bool is_zero() const { return key_ == 0; }
  double value() const;
  // A larger weight has a larger key; 0 has 0.
  uint32_t key() const { return key_; }

 private:
  explicit RoundedWeight(uint32_t key) : key_(key) {}
  uint32_t mantissa() const;  // 512 to 1023
  int exponent() const;       // the value is mantissa · 2^exponent

  friend absl::StatusOr<std::vector<uint64_t>> RelativeWeights(
      std::span<const RoundedWeight> weights);

  uint32_t key_;
};

// Returns a whole number below 2^30 for each weight, in proportion to them.
// kInvalidArgument: they spread over more than kMaxWeightSpread. REQUIRES: they
// ascend, and are over 0.
absl::StatusOr<std::vector<uint64_t>> RelativeWeights(
    std::span<const RoundedWeight> weights);

}  // namespace leat
