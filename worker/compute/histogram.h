// SPDX-License-Identifier: Apache-2.0
//
// Histogram: counts of durations in buckets of about 19 % width, from 1 µs to
// hours. Add is wait-free: it may run in gRPC's release hooks.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "core/clock.h"

namespace leat::worker {

class Histogram {
 public:
  static constexpr int kSteps = 4;  // buckets per doubling
  static constexpr int kBuckets = 35 * kSteps;
  using Counts = std::array<uint64_t, kBuckets>;

  void Add(Duration duration, uint64_t times = 1) {
    const int64_t ns = duration.count() < 0 ? 0 : duration.count();
    counts_[BucketOf(ns)].fetch_add(times, std::memory_order_relaxed);
    sum_ns_.fetch_add(static_cast<uint64_t>(ns) * times,
                      std::memory_order_relaxed);
  }

  struct Snapshot {
    Counts counts{};
    uint64_t sum_ns = 0;
  };
  Snapshot snapshot() const;

  struct Summary {
    uint64_t count = 0;
    double mean_ms = 0, p50_ms = 0, p95_ms = 0;
    double max_ms = 0;  // the upper edge of the last bucket in use
  };
  // Summarizes the durations added between two snapshots.
  static Summary Summarize(const Snapshot& before, const Snapshot& after);

 private:
  static int BucketOf(int64_t ns);
  static double UpperEdgeMs(int bucket);

  std::array<std::atomic<uint64_t>, kBuckets> counts_{};
  std::atomic<uint64_t> sum_ns_{0};
};

}  // namespace leat::worker
