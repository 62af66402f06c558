// SPDX-License-Identifier: Apache-2.0
//
// Pools decides how many workers each pool should have, and notifies watchers.
//
//   Tick, every 2 s ─► See:     what is known, with the lock
//                      Decide:  statistics and core/cluster/pool_policy.h,
//                               without it (server/coordinator/pools.cc)
//                      Publish: victims retire and watchers wake, with it
//   Set ─► durable event ─► due at once
//
// Targets are soft. After a start with pools in the store nothing is decided
// for `pool_decision_delay`, in which the workers reconnect: a cluster engine that saw a
// pool without workers would end those that it has.
//
// Thread-compatible; the owner locks.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/pool_policy.h"
#include "server/coordinator/parts/deferred_actions.h"
#include "server/coordinator/parts/sessions.h"
#include "server/coordinator/parts/tables.h"
#include "server/coordinator/parts/transactions.h"
#include "server/membership/membership.h"
#include "server/state/state.h"

namespace leat::server {

// A job that has consumers.
struct PoolJobSeen {
  std::string name;
  DecoderClass decoder_class = DecoderClass::kExact;
  std::vector<std::string> consumers;
};

struct PoolSeen {
  PoolBounds bounds;
  std::vector<PoolWorker> workers;
  std::vector<std::string> drained;        // by an operator
  std::map<DecoderClass, double> weights;  // of serving workers
  PoolTarget target;                       // output: the decision
};

// PoolsSeen holds the inputs of decisions about pools.
struct PoolsSeen {
  std::map<std::string, PoolSeen> pools;   // those with bounds
  std::map<DecoderClass, double> weights;  // of all serving workers
  std::vector<PoolJobSeen> jobs;           // that have consumers
};

class Pools {
 public:
  using Wake = std::function<void()>;

  // All pointers outlive it. `wake`: there is an earlier deadline.
  Pools(const State* state, Membership* membership, Sessions* sessions,
        Tables* tables, Transactions* transactions, Wake wake)
      : state_(state),
        membership_(membership),
        sessions_(sessions),
        tables_(tables),
        transactions_(transactions),
        wake_(std::move(wake)) {}

  // Sets the first time that is known. With pools in the store nothing is
  // decided for `delay`.
  void Start(Now now, Duration delay);
  // Returns when to decide next; max(): never.
  MonotonicTime due() const { return due_; }
  // `others`: pools without bounds that are included.
  PoolsSeen See(const std::vector<PoolView>& others) const;
  // The same, and schedules the next decision.
  PoolsSeen SeeToDecide(Now now);
  // `seen`: with targets.
  void Publish(const PoolsSeen& seen, Now now, DeferredActions* deferred);

  // These are the Coordinator functions with the same names.
  void Set(const std::string& name, const PoolBounds& bounds,
           AnsweredTransaction::Done done, DeferredActions* deferred);
  std::vector<PoolView> Views() const;
  absl::StatusOr<PoolView> Decided(const std::string& name) const;
  absl::StatusOr<uint64_t> Watch(const std::string& name, Wake wake);
  absl::StatusOr<std::optional<PoolView>> NextForWatcher(uint64_t watcher);
  void CloseWatcher(uint64_t watcher) { watchers_.erase(watcher); }
  void WakeAll(DeferredActions* deferred) const;

 private:
  struct Published {
    PoolBounds bounds;
    PoolTarget target;
    uint64_t version = 0;  // changes with the watchers' view
  };
  struct Watcher {
    std::string pool;
    Wake wake;
    std::optional<uint64_t> sent;  // version
  };
  PoolView ViewOf(const std::string& name) const;
  void WakeWatchers(const std::string& pool, DeferredActions* deferred) const;

  const State* const state_;
  Membership* const membership_;
  Sessions* const sessions_;
  Tables* const tables_;
  Transactions* const transactions_;
  const Wake wake_;
  std::map<std::string, Published> pools_;
  std::map<uint64_t, Watcher> watchers_;
  uint64_t version_ = 0;
  MonotonicTime due_ = MonotonicTime::max();
  MonotonicTime decide_after_ = MonotonicTime::min();
};

}  // namespace leat::server
