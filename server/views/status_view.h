// SPDX-License-Identifier: Apache-2.0
//
// StatusView makes the answer of GetStatus, for callers and for the page.
// Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/mutex.h"
#include "leat/v1/admin.pb.h"
#include "server/coordinator/coordinator.h"

namespace leat::server {

// The period in which a job's limit is judged, unless another one is requested.
inline constexpr Duration kJudgedBy = std::chrono::minutes(1);

// Workers per step, so that the coordinator's lock is free in between.
inline constexpr size_t kWorkersAtOnce = 1000;

// Adds to a job in use what limits it, and its stall in the same period, so
// that the two agree.
void SetLimit(const BottleneckView& limit, JobView* job);

// Leaves out what may be large: see GetStatus in admin.proto.
v1::JobSummary SummaryOf(const JobView& view);

class StatusView {
 public:
  // Statistics of all workers; nullopt: not computed yet.
  using KnownStatistics = std::optional<WorkerSlots>;

  // Both outlive it.
  StatusView(Coordinator* coordinator, const Clock* clock)
      : coordinator_(coordinator),
        clock_(clock),
        started_at_(clock->WallNow()) {}

  // Known once the server has started.
  void set_address(const std::string& address) {
    MutexLock lock(&mu_);
    address_ = address;
  }

  // Returns all except workers and jobs.
  v1::GetStatusResponse Outline() const;
  v1::GetStatusResponse Status() const;
  // Includes what limits the jobs in use. `workers`: one per answer.
  std::vector<JobView> Jobs(const Page& page, KnownStatistics* workers) const;

 private:
  Coordinator* const coordinator_;
  const Clock* const clock_;
  const WallTime started_at_;
  mutable Mutex mu_;
  std::string address_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::server
