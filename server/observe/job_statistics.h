// SPDX-License-Identifier: Apache-2.0
//
// JobStatistics: what workers did for each job, if their threads work for
// several, and the last verdict on each job.
//
// Workers report counts since a job came to them. The differences between two
// reports, a slot of the history or more apart, are summed over workers, per
// job and slot, for as long as verdicts look back:
//
//   Note("w0", {a: input 10 s, b: input 0 s}, 12:00:00)
//   Note("w0", {a: input 12 s, b: input 0 s}, 12:00:02)
//     ─► Mean("a", …): its next rows wait for records, all the time
//
// Thread-safe. Reports are untrusted: whatever they say, shares are in [0, 1],
// and the number of jobs is bounded.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "core/mutex.h"
#include "core/observe/bottleneck.h"
#include "leat/v1/types.pb.h"
#include "server/observe/worker_slots.h"

namespace leat::server {

class JobStatistics {
 public:
  // Begins a session: its counts start at zero.
  void BeginWorker(std::string_view name);
  void Note(const std::string& worker, const v1::WorkerStats& stats,
            MonotonicTime now);
  // Returns the mean over all workers, weighted by `waits`. nullopt: no
  // reports.
  std::optional<WorkerStatistics> Mean(const std::string& job,
                                       const WaitsBySlot& waits) const;

  // Returns the last verdict on the job, if given within the last minute;
  // kUnknown: none.
  Limit Before(const std::string& job, MonotonicTime now) const;
  void Give(const std::string& job, Limit limit, MonotonicTime now);

 private:
  struct Report {
    MonotonicTime at{};
    std::map<std::string, v1::JobRows, std::less<>> jobs;
  };
  struct Given {
    Limit limit = Limit::kUnknown;
    MonotonicTime at{};
  };

  void Add(const v1::JobRows& before, const v1::JobRows& now, double seconds,
           double threads, int64_t slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Sweep(MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  absl::flat_hash_map<std::string, Report> last_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, WorkerSlots> jobs_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, Given> given_ ABSL_GUARDED_BY(mu_);
  MonotonicTime swept_at_ ABSL_GUARDED_BY(mu_){};
};

}  // namespace leat::server
