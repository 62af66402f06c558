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
  // Returns the name of a source of the job by its number.
  using NameSource = std::function<std::string(uint32_t)>;
  // Returns the mean over all workers, weighted by `waits`. nullopt: no
  // reports. `name_source` is called without a lock; nullptr: the source that
  // took most of the reading is not named.
  std::optional<WorkerStatistics> Mean(const std::string& job,
                                       const WaitsBySlot& waits,
                                       const NameSource& name_source) const;

  // Returns the last verdict on the job, if given within the last minute;
  // kUnknown: none.
  Limit Before(const std::string& job, MonotonicTime now) const;
  void Give(const std::string& job, Limit limit, MonotonicTime now);

 private:
  // The counts of the worker as a whole since it began.
  struct Totals {
    double threads = 1, gpus = 0;
    uint64_t threads_ns = 0, gpus_ns = 0;  // at work
    uint64_t quota_periods = 0, quota_used_up = 0;
  };
  struct Report {
    MonotonicTime at{};
    Totals totals;
    std::map<std::string, v1::JobRows, std::less<>> jobs;
  };
  // Time that storage took in a slot, of all sources, and by source.
  struct SourceTimes {
    uint64_t all_ns = 0;
    std::map<uint32_t, uint64_t> ns;
  };
  // A source, and its fraction of the time that storage took for all.
  struct SlowSource {
    uint32_t number = 0;
    double share = 0;
  };
  struct Judged {
    WorkerSlots did;
    std::map<int64_t, SourceTimes> sources;  // by slot; empty: no mixture
  };
  struct Given {
    Limit limit = Limit::kUnknown;
    MonotonicTime at{};
  };

  static Totals TotalsOf(const v1::WorkerStats& stats);
  // Returns what the worker's threads, GPUs and quota did between two reports.
  static WorkerStatistics Between(const Totals& before, const Totals& now);
  // `did`: of the worker as a whole.
  void Add(const v1::JobRows& before, const v1::JobRows& now, double seconds,
           WorkerStatistics did, int64_t slot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // nullopt: none took more than half of the time.
  static std::optional<SlowSource> SlowSourceIn(const Judged& job,
                                                const WaitsBySlot& waits);
  static void AddSources(const v1::JobRows& before, const v1::JobRows& now,
                         SourceTimes* to);
  void Sweep(MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  absl::flat_hash_map<std::string, Report> last_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, Judged> jobs_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, Given> given_ ABSL_GUARDED_BY(mu_);
  MonotonicTime swept_at_ ABSL_GUARDED_BY(mu_){};
};

}  // namespace leat::server
