// SPDX-License-Identifier: Apache-2.0
//
// StatusView: the answer of GetStatus, for those who call it and for the page.
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

// What limits a job is judged by so long, unless another time is asked for.
inline constexpr Duration kJudgedBy = std::chrono::minutes(1);

// In steps of so many workers, so that the coordinator's lock is free between.
inline constexpr size_t kWorkersAtOnce = 1000;

// Adds to a job that somebody pulls what limits it, and its stall in the same
// time, so that the two agree.
void SetLimit(const BottleneckView& limit, JobView* job);

// Without what may be large: see GetStatus in admin.proto.
v1::JobSummary SummaryOf(const JobView& view);

class StatusView {
 public:
  // What all workers did; nullopt: nobody has asked for it yet.
  using KnownFigures = std::optional<WorkerSlots>;

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

  // All but workers and jobs.
  v1::GetStatusResponse Outline() const;
  v1::GetStatusResponse Status() const;
  // With what limits those that somebody pulls. `workers` is one answer's.
  std::vector<JobView> Jobs(const Page& page, KnownFigures* workers) const;

 private:
  Coordinator* const coordinator_;
  const Clock* const clock_;
  const WallTime started_at_;
  mutable Mutex mu_;
  std::string address_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::server
