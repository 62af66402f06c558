// SPDX-License-Identifier: Apache-2.0
//
// LatencyHistogram: durations in buckets of fixed relative width (about 9 %),
// from 1 µs to 70 minutes, in 2 KiB.
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
  // The upper edge of the bucket that holds the quantile; 0 if empty.
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
  std::array<uint32_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  Duration sum_{0};
  Duration max_{0};
};

double Milliseconds(Duration duration);

}  // namespace leat::client
