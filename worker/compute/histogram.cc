// SPDX-License-Identifier: Apache-2.0
#include "worker/compute/histogram.h"

#include <algorithm>
#include <cmath>

namespace leat::worker {

int Histogram::BucketOf(int64_t ns) {
  const double us = static_cast<double>(ns) / 1e3;
  if (us <= 1) return 0;
  return std::min(kBuckets - 1,
                  static_cast<int>(std::ceil(std::log2(us) * kSteps)));
}

double Histogram::UpperEdgeMs(int bucket) {
  return std::exp2(static_cast<double>(bucket) / kSteps) / 1e3;
}

Histogram::Snapshot Histogram::snapshot() const {
  Snapshot snapshot;
  for (int i = 0; i < kBuckets; ++i)
    snapshot.counts[i] = counts_[i].load(std::memory_order_relaxed);
  snapshot.sum_ns = sum_ns_.load(std::memory_order_relaxed);
  return snapshot;
}

Histogram::Summary Histogram::Summarize(const Snapshot& before,
                                        const Snapshot& after) {
  Summary summary;
  Counts counts;
  for (int i = 0; i < kBuckets; ++i) {
    counts[i] = after.counts[i] - before.counts[i];
    summary.count += counts[i];
  }
  if (summary.count == 0) return summary;
  summary.mean_ms = static_cast<double>(after.sum_ns - before.sum_ns) / 1e6 /
                    static_cast<double>(summary.count);
  const auto quantile = [&](double q) {
    const auto rank = static_cast<uint64_t>(
        std::ceil(q * static_cast<double>(summary.count)));
    uint64_t seen = 0;
    for (int i = 0; i < kBuckets; ++i)
      if ((seen += counts[i]) >= rank) return UpperEdgeMs(i);
    return UpperEdgeMs(kBuckets - 1);
  };
  summary.p50_ms = quantile(0.5);
  summary.p95_ms = quantile(0.95);
  summary.max_ms = quantile(1);
  return summary;
}

}  // namespace leat::worker
