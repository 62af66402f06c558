// SPDX-License-Identifier: Apache-2.0
//
// Expiry deletes what is no longer used: jobs without a consumer, datasets
// without a job.
//
// The monotonic clock counts idle time. Only the time before this process
// started comes from the store, as wall time: a later clock jump deletes
// nothing, and for an hour a clock that is wrong at the start can be noticed
// and corrected.
//
// A job's last use is stored at most once a day, as one event for all jobs in
// use. A job may therefore be kept for a day longer than its TTL, but never
// shorter.
//
// With a TTL of 30 days, in hours since the start:
//
//   0    Tick: job j was last used 29 days ago by the store's wall time
//   1    the first hour is over: jobs may be deleted from here on
//   24   j is idle for 30 days: it is deleted, and its dataset's time begins
//        with j's last use, so it goes in the same sweep if j was its last job
//
// Thread-compatible; the owner locks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/coordinator/parts/announcer.h"
#include "server/coordinator/parts/deferred_actions.h"
#include "server/coordinator/parts/sessions.h"
#include "server/coordinator/parts/tables.h"
#include "server/coordinator/parts/transactions.h"
#include "server/jobs/bad_sample_ledger.h"
#include "server/jobs/damaged_indexes.h"
#include "server/jobs/dataset_looks.h"
#include "server/jobs/last_positions.h"
#include "server/state/state.h"

namespace leat::server {

// A job as it was before its deletion. `info` nullptr: it was set aside.
struct GoneJob {
  std::shared_ptr<const JobInfo> info;
  std::vector<TableKey> keys;
};

class Expiry {
 public:
  // The parts that forget deleted jobs and datasets. All outlive it.
  struct Uses {
    const State* state;
    const ConsumerTable* consumers;
    Tables* tables;
    Transactions* transactions;
    Announcer* announcer;
    BadSampleLedger* bad_samples;
    LastLooks* looks;
    LastPositions* positions;
    DamagedIndexes* damaged;
  };
  // `ttl` 0: nothing expires.
  Expiry(const Uses& uses, Duration ttl, std::function<void()> wake)
      : uses_(uses), ttl_(ttl), wake_(std::move(wake)) {}

  // Sets the first time that is known.
  void Start(Now now);
  void Tick(Now now, DeferredActions* deferred);
  MonotonicTime NextDeadline() const;  // max(): never

  void JobUsed(const std::string& name, Now now) { used_at_[name] = now.mono; }
  void DatasetUsed(const std::string& id) { unused_since_.erase(id); }
  void JobGone(const GoneJob& job, DeferredActions* deferred);
  void DatasetGone(const std::string& id);

 private:
  class UsedTransaction;
  class JobTransaction;
  class DatasetTransaction;
  bool InUse(const JobInfo& job) const {
    return uses_.consumers->UsesPlan(job.plan_hash);
  }
  bool SweepJobs(Now now, DeferredActions* deferred);
  bool SweepDatasets(Now now, DeferredActions* deferred);

  const Uses uses_;
  const Duration ttl_;
  const std::function<void()> wake_;
  MonotonicTime started_at_, sweep_at_;
  // When each job was last used, and since when each dataset has had no jobs.
  std::map<std::string, MonotonicTime> used_at_;
  std::map<std::string, MonotonicTime> unused_since_;
};

}  // namespace leat::server
