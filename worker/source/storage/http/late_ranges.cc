// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/http/late_ranges.h"

#include <algorithm>

namespace leat::worker {

void LateRanges::CountRequest() {
  const MutexLock lock(&mu_);
  ++requests_;
}

void LateRanges::CountAnswer(Duration took) {
  const MutexLock lock(&mu_);
  took_[answers_++ % kSeen] = took;
}

std::optional<Duration> LateRanges::LateAfter() const {
  if (config_.max_hedges == 0) return std::nullopt;
  const MutexLock lock(&mu_);
  if (answers_ < kMinSeen) return std::nullopt;
  std::array<Duration, kSeen> sorted = took_;
  const size_t seen = std::min<uint64_t>(answers_, kSeen);
  const size_t nth = seen * 95 / 100;
  std::nth_element(sorted.begin(), sorted.begin() + nth, sorted.begin() + seen);
  const auto late =
      std::chrono::duration_cast<Duration>(sorted[nth] * config_.hedge_factor);
  return std::max<Duration>(late, config_.hedge_after);
}

bool LateRanges::BeginHedge() {
  const MutexLock lock(&mu_);
  if (open_hedges_ >= config_.max_hedges ||
      (hedges_ + 1) * config_.hedge_every > requests_) {
    return false;
  }
  ++hedges_;
  ++open_hedges_;
  return true;
}

void LateRanges::EndHedge() {
  const MutexLock lock(&mu_);
  --open_hedges_;
}

}  // namespace leat::worker
