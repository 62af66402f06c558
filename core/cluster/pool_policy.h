// SPDX-License-Identifier: Apache-2.0
//
// PoolPolicy decides how many workers a pool should have, and which ones to
// remove.
//
//   demand  = rows/s that the pool's trainers would take if they never waited
//   rate    = median of what one worker could make in a second
//   need    = demand / (0.85 × rate), rounded up
//
//   trainers wait for more than 2 % ──► at once: need, and at least one more
//                                       than serve; at most 2 × as many, plus 1
//   demand < 0.7 × desired × rate, for
//     low_for without a stall ────────► need, at most once a minute
//   else ─────────────────────────────► as before
//
// A raise counts from the workers that serve, not from those that were
// requested: while new workers are starting, the same figures give the same
// number. Observation of trainers begins anew when workers have joined
// (LookFrom), so that a stall which they have ended does not raise the number
// again.
//
// Victims are the workers that were chosen before, then the slowest, then those
// with the least in their caches. Nothing is lost if an engine ends other ones.
//
// Level-triggered: a target is complete in itself. Pure: reads no clock.
// Thread-compatible.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/clock.h"

namespace leat {

inline constexpr std::string_view kDefaultPool = "default";
inline constexpr uint32_t kMaxPoolWorkers = 100'000;
inline constexpr Duration kPoolLowFor = std::chrono::minutes(10);

// kInvalidArgument: not 1 to 63 letters, digits, '-', '_' and '.', with a
// letter or digit in front. Engines use the name in names of their own.
absl::Status CheckPoolName(std::string_view name);

struct PoolBounds {
  uint32_t min = 0;
  uint32_t max = 0;  // 0: the pool is not scaled
  friend bool operator==(const PoolBounds&, const PoolBounds&) = default;
};

// kInvalidArgument: min above max, or more than kMaxPoolWorkers.
absl::Status CheckPoolBounds(const PoolBounds& bounds);

// A worker that is alive, and that no operator has drained.
struct PoolWorker {
  std::string name;
  double capacity_rows_per_s = 0;  // 0: not yet measured
  uint64_t cache_bytes = 0;
};

// The activity of a job's consumers since LookFrom.
struct PoolJob {
  std::string name;
  double rows_per_s = 0;
  // Fraction of its time that the consumer with the longest wait waits.
  double waiting = 0;
  // True if a consumer still waits now. False if the wait is over, or if no
  // stage is busy, so that more workers would not help.
  bool stalls = false;
  double share = 1;  // fraction of its rows that this pool computes
};

// Returns the rows/s that the trainers would take of the pool if they never
// waited.
double DemandOf(const std::vector<PoolJob>& jobs);

struct PoolTarget {
  uint32_t desired = 0;
  std::vector<std::string> drain;  // sorted
  std::string reason;              // reason of the last change of `desired`
  double demand_rows_per_s = 0;
};

class PoolPolicy {
 public:
  // `low_for`: a stall that ends and begins again within this time does not
  // make the pool smaller in between.
  explicit PoolPolicy(Duration low_for = kPoolLowFor) : low_for_(low_for) {}

  // Returns the time from which on consumers' figures describe the current
  // workers.
  MonotonicTime LookFrom(MonotonicTime now) const;

  // `jobs` is nullopt if nothing has been observed since LookFrom.
  // REQUIRES: bounds.max > 0; `now` does not go back.
  PoolTarget Decide(const PoolBounds& bounds,
                    const std::vector<PoolWorker>& workers,
                    const std::optional<std::vector<PoolJob>>& jobs,
                    MonotonicTime now);

 private:
  void Begin(const PoolBounds& bounds, uint32_t serving, MonotonicTime now);
  void Judge(const PoolBounds& bounds, const std::vector<PoolWorker>& workers,
             const std::vector<PoolJob>& jobs, MonotonicTime now);
  void Change(uint32_t desired, std::string reason, MonotonicTime now);
  void ChooseVictims(const std::vector<PoolWorker>& workers);

  const Duration low_for_;
  bool begun_ = false;
  PoolTarget target_;
  std::set<std::string> known_;  // workers at the last decision
  MonotonicTime began_at_, changed_at_, members_at_;
  std::optional<MonotonicTime> low_since_;
};

}  // namespace leat
