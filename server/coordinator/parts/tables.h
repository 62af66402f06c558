// SPDX-License-Identifier: Apache-2.0
//
// Tables maintains the owners of the shards of every dataset in use: when
// tables are computed again, and which sessions are told.
//
//   Use, of a new table ───────────────────────────────┐
//   MembersChanged ─► the update is due, after a delay │
//   Tick, after the publish delay ─────────────────────┴─► TakeDue: computed
//                                           without the lock ─► Publish
//                                           ─► consumers, and workers that own
//                                              other shards than before
//
// After a start with jobs, no table is published until earlier workers had time
// to reconnect (the publish delay): consumers keep the tables that they have.
//
// Thread-compatible; the owner locks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/coordinator/parts/config.h"
#include "server/coordinator/parts/deferred_actions.h"
#include "server/coordinator/parts/sessions.h"
#include "server/membership/assignments.h"
#include "server/membership/kept_shares.h"
#include "server/state/state.h"

namespace leat::server {

// Returns the keys of the tables that the job's consumers get: one per dataset,
// each once, sorted.
std::vector<TableKey> KeysOf(const State& state, const JobInfo& job);

class Tables {
 public:
  // All arguments outlive it. `wake`: there are tables to compute, or an
  // earlier deadline.
  Tables(const CoordinatorConfig& config, const State* state,
         Sessions* sessions, std::shared_ptr<KeptShares> kept,
         std::function<void()> wake)
      : config_(config),
        state_(state),
        sessions_(sessions),
        kept_(std::move(kept)),
        wake_(std::move(wake)) {}

  // The state was loaded. The publish delay of its jobs' tables begins with the
  // first known time, which Start reports.
  void Recover(DeferredActions* deferred);
  void Start();
  // A worker has registered: others may follow.
  void ProlongPublishDelay(Now now);
  bool publish_delayed() const { return publish_after_.has_value(); }

  // Counts a user of the job's tables: the job, or a consumer.
  void Use(const JobInfo& job, DeferredActions* deferred);
  void Release(std::span<const TableKey> keys, DeferredActions* deferred);
  void MembersChanged(Now now, DeferredActions* deferred);
  // Returns whether all tables are due now.
  bool Tick(Now now, DeferredActions* deferred);
  MonotonicTime NextDeadline() const;  // max(): never

  std::vector<std::shared_ptr<TableBuilder>> TakeDue();
  // Returns whether the table has changed.
  bool Publish(const TableBuilder& builder, const TableBuilder::Built& built,
               DeferredActions* deferred);
  // Returns the next dataset whose owned shards are to be sent to the worker.
  std::optional<OwnedShards> NextOwned(WorkerSession* session) const;

  // Records which fraction of its shards the worker caches.
  void NoteKept(const std::string& worker, const v1::WorkerStats& stats,
                Now now, DeferredActions* deferred);

  const Assignments& assignments() const { return assignments_; }

 private:
  void ReleaseOne(const TableKey& key, DeferredActions* deferred);

  const CoordinatorConfig& config_;
  const State* const state_;
  Sessions* const sessions_;
  const std::shared_ptr<KeptShares> kept_;  // synchronises itself
  const std::function<void()> wake_;
  Assignments assignments_;
  std::optional<MonotonicTime> update_at_;
  bool all_due_ = false;
  // After a start: no earlier table is published before this time; max(): no
  // worker has registered yet.
  bool recovered_jobs_ = false;
  std::optional<MonotonicTime> publish_after_;
  MonotonicTime first_worker_at_;  // within the publish delay
};

}  // namespace leat::server
