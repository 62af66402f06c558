// SPDX-License-Identifier: Apache-2.0
//
// LatencyHistogram: durations in buckets of fixed relative width (about 9 %),
// from 1 µs to 70 minutes, in 2 KiB. Add keeps the median and the 95th
// percentile up to date, which a client reads for every row; other quantiles
// need a walk over the buckets.
//
// Thread-compatible.
#pragma once

#include <array>
#include <cstdint>

#include "core/clock.h"

namespace leat::client {

class LatencyHistogram {
 public:
  void Add(Duration duration);
  // Returns the upper edge of the bucket with the quantile; 0 if empty.
  Duration Quantile(double q) const;
  Duration mean() const;
  Duration max() const { return max_; }
  uint64_t count() const { return count_; }
  // Halves every count, so that old observations fade.
  void Fade();

 private:
  static constexpr int kBucketsPerOctave = 8;
  static constexpr int kOctaves = 32;
  static constexpr int kBuckets = kBucketsPerOctave * kOctaves;
  // The bucket with a quantile, and the count in the buckets before it.
  struct Kept {
    double q;
    size_t bucket = 0;
    uint64_t before = 0;
  };
  static uint64_t RankOf(double q, uint64_t count);
  // Moves to the bucket that has its quantile now. REQUIRES: count_ > 0.
  void Settle(Kept* kept) const;
  Duration EdgeOf(size_t bucket) const;

  std::array<uint32_t, kBuckets> buckets_{};
  std::array<Kept, 2> kept_{{{.q = 0.5}, {.q = 0.95}}};
  uint64_t count_ = 0;
  Duration sum_{0};
  Duration max_{0};
};

double Milliseconds(Duration duration);

}  // namespace leat::client
