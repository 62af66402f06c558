// SPDX-License-Identifier: Apache-2.0
//
// LateRanges: decides when a range is late, and whether it may be requested a
// second time. All readers of a process share one. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "core/mutex.h"
#include "worker/source/storage/base/config.h"

namespace leat::worker {

class LateRanges {
 public:
  // Fewer answers than this are not enough to decide what is late.
  static constexpr size_t kMinSeen = 16;

  explicit LateRanges(const StorageConfig& config) : config_(config) {}

  // A first request was made; its range came after `took`.
  void CountRequest();
  void CountAnswer(Duration took);
  // Returns the time after which a range is late; nullopt: too little is known
  // yet.
  std::optional<Duration> LateAfter() const;
  // Takes one of the second requests that are allowed now. A caller that gets
  // true calls EndHedge once.
  bool BeginHedge();
  void EndHedge();

 private:
  static constexpr size_t kSeen = 128;

  const StorageConfig config_;
  mutable Mutex mu_;
  std::array<Duration, kSeen> took_ ABSL_GUARDED_BY(mu_) = {};  // a ring
  uint64_t answers_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t requests_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t hedges_ ABSL_GUARDED_BY(mu_) = 0;
  int open_hedges_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace leat::worker
