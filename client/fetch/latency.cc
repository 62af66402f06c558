// SPDX-License-Identifier: Apache-2.0
#include "client/fetch/latency.h"

#include <algorithm>
#include <cmath>

namespace leat::client {

void LatencyHistogram::Add(Duration duration) {
  const double micros =
      std::max(1.0, static_cast<double>(duration.count()) / 1e3);
  const auto bucket = static_cast<size_t>(std::min(
      kBuckets - 1, static_cast<int>(std::log2(micros) * kBucketsPerOctave)));
  ++buckets_[bucket];
  ++count_;
  sum_ += duration;
  max_ = std::max(max_, duration);
  for (Kept& kept : kept_) {
    if (bucket < kept.bucket) ++kept.before;
    Settle(&kept);
  }
}

uint64_t LatencyHistogram::RankOf(double q, uint64_t count) {
  const auto rank =
      static_cast<uint64_t>(std::ceil(q * static_cast<double>(count)));
  return std::max<uint64_t>(rank, 1);
}

// There is such a bucket, since a rank is at most the count.
void LatencyHistogram::Settle(Kept* kept) const {
  const uint64_t rank = RankOf(kept->q, count_);
  while (kept->before >= rank) kept->before -= buckets_[--kept->bucket];
  while (kept->before + buckets_[kept->bucket] < rank)
    kept->before += buckets_[kept->bucket++];
}

Duration LatencyHistogram::EdgeOf(size_t bucket) const {
  static const auto* const edges = [] {
    auto* const made = new std::array<Duration, kBuckets>;
    for (size_t i = 0; i < made->size(); ++i) {
      const double micros =
          std::exp2(static_cast<double>(i + 1) / kBucketsPerOctave);
      (*made)[i] = Duration(static_cast<int64_t>(micros * 1e3));
    }
    return made;
  }();
  return std::min(max_, (*edges)[bucket]);
}

Duration LatencyHistogram::Quantile(double q) const {
  if (count_ == 0) return Duration(0);
  for (const Kept& kept : kept_)
    if (kept.q == q) return EdgeOf(kept.bucket);
  const uint64_t rank = RankOf(q, count_);
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= rank) return EdgeOf(i);
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
  for (Kept& kept : kept_) {
    kept = {.q = kept.q};
    if (count_ > 0) Settle(&kept);
  }
}

double Milliseconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

}  // namespace leat::client
