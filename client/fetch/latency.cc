// SPDX-License-Identifier: Apache-2.0
#include "client/fetch/latency.h"

#include <algorithm>
#include <cmath>

namespace leat::client {

void LatencyHistogram::Add(Duration duration) {
  const double micros =
      std::max(1.0, static_cast<double>(duration.count()) / 1e3);
  const int bucket = std::min(
      kBuckets - 1, static_cast<int>(std::log2(micros) * kBucketsPerOctave));
  ++buckets_[static_cast<size_t>(bucket)];
  ++count_;
  sum_ += duration;
  max_ = std::max(max_, duration);
}

Duration LatencyHistogram::Quantile(double q) const {
  if (count_ == 0) return Duration(0);
  const auto rank =
      static_cast<uint64_t>(std::ceil(q * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (int i = 0; i < kBuckets; ++i) {
    seen += buckets_[static_cast<size_t>(i)];
    if (seen >= std::max<uint64_t>(rank, 1)) {
      const double micros =
          std::exp2(static_cast<double>(i + 1) / kBucketsPerOctave);
      return std::min(max_, Duration(static_cast<int64_t>(micros * 1e3)));
    }
  }
  return max_;
}

Duration LatencyHistogram::mean() const {
  return count_ == 0 ? Duration(0) : sum_ / static_cast<int64_t>(count_);
}

void LatencyHistogram::Fade() {
  const Duration mean = this->mean();
  count_ = 0;
  for (uint32_t& bucket : buckets_) count_ += bucket /= 2;
  sum_ = mean * static_cast<int64_t>(count_);
}

double Milliseconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

}  // namespace leat::client
