// SPDX-License-Identifier: Apache-2.0
//
// Membership: the workers that there are, their states and their weights.
//
// A worker is READY or DRAINING while its heartbeats come, and LOST when none
// came for `lost_after`, or when its stream broke and it did not come back
// within `reconnect_grace`. A heartbeat on a live stream brings a lost worker
// back. A name that registers again replaces the older session. A lost worker
// is remembered for `forget_after`, so that people can see it.
//
// Many workers that fall silent at once have not all died: rather the
// coordinator was stopped, or cut off from them. So when a worker is due to be
// lost and more than `hold_share` of the members are silent (and at least two),
// or when Expire is called late, nobody is lost for another `lost_after`. This
// hold is prolonged by each worker that is heard of again, up to
// `max_holds` × `lost_after`. A worker is spared once for each silence.
//
// Weights: one worker's share of the shards, relative. It starts as the number
// of threads, times what a thread counts of workers alike (of the same decoder
// classes: a GPU's counts more), and follows the measured capacity once there
// is one, in units of the typical capacity of a thread (the median over
// workers), so that a cluster of equal machines keeps its weights whatever the
// work costs. Steps of 2^(1/4) with hysteresis, and only after several reports
// agree: noise moves no shard. Later a capacity says as much of what a worker
// keeps as of its machine, and a shard that moves leaves behind what is kept of
// it. So from then on a weight changes only for a larger difference that lasts.
// A machine that comes back keeps its weight.
//
// Cost: Register O(log W), Heartbeat O(1) and once a second O(W), Expire O(1)
// for each worker that is due. Thread-compatible; the owner locks. Reads no
// clock.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/state/types.h"

namespace leat::server {

struct MembershipConfig {
  Duration lost_after = std::chrono::seconds(3);
  Duration reconnect_grace = std::chrono::milliseconds(500);
  Duration forget_after = std::chrono::minutes(10);
  size_t max_workers = 20'000;  // remembered ones included
  double hold_share = 1.0 / 3;
  int max_holds = 10;
  // A capacity this far from the weight, either way, for so many reports in a
  // row changes the weight: in a worker's first reports of a capacity, and
  // later.
  struct Deviation {
    double tolerance;
    int reports;
  };
  int first_reports = 10;
  Deviation first_deviation = {1.25, 3};
  Deviation later_deviation = {1.6, 60};
};

class Membership {
 public:
  struct Worker {
    std::shared_ptr<const WorkerRegistration> registration;
    SessionId session = 0;  // 0: its stream has ended
    bool drained = false;   // by an operator
    bool retiring = false;  // its pool has too many
    bool lost = false;
    double weight = 1;
    bool weighed = false;  // by its capacity
    WorkerReport report;
    // It owns no shards of the datasets that these name.
    StorageFailures failures;
    WallTime joined_at, last_heartbeat_at;
    MonotonicTime last_heartbeat, lost_at, disconnected_at;
    int measured = 0;  // reports of a capacity, up to first_reports
    int deviations = 0;

    WorkerState state() const {
      return lost                  ? WorkerState::kLost
             : drained || retiring ? WorkerState::kDraining
                                   : WorkerState::kReady;
    }

   private:
    friend class Membership;
    std::list<Worker*>* queue_ = nullptr;  // one of Membership's
    std::list<Worker*>::iterator place_;   // in it
    bool spared_ = false;                  // by a hold, in this silence
  };
  struct Expired {
    std::vector<std::string> lost;  // newly
    size_t held = 0;                // members that a new hold spares
  };

  explicit Membership(const MembershipConfig& config) : config_(config) {}

  // Returns the session that was replaced, or 0.
  SessionId Register(const WorkerRegistration& registration, SessionId session,
                     bool drained, Now now);
  // True: its state, its weight or whether it may own shards changed.
  bool Heartbeat(Worker* worker, WorkerReport report, StorageFailures failures,
                 Now now);
  // `left`: it said good-bye and is forgotten; otherwise it may come back.
  // True: the set of workers changed now.
  bool Disconnect(SessionId session, bool left, Now now);
  // True: known and changed.
  bool SetDrained(std::string_view name, bool drained);
  // The same for a worker that its pool gives up. A worker that registers again
  // begins without it.
  bool SetRetiring(std::string_view name, bool retiring);
  // Marks lost and forgets what is due.
  Expired Expire(Now now);
  // When Expire has something to do, at the earliest. max(): never.
  MonotonicTime NextDeadline() const;
  // nullopt: nobody is spared now.
  std::optional<MonotonicTime> held_until() const { return hold_until_; }

  // nullptr: none.
  Worker* Find(std::string_view name);
  Worker* Find(SessionId session);
  const std::map<std::string, Worker, std::less<>>& workers() const {
    return workers_;
  }
  size_t num_ready() const { return num_ready_; }
  size_t num_ready(DecoderClass decoder_class) const;
  size_t num_ready_with_engines() const { return num_ready_with_engines_; }
  // READY workers, by class and digest (zero: they do not tell it): threads.
  using DecoderThreads = std::map<std::pair<DecoderClass, Digest>, size_t>;
  const DecoderThreads& decoder_threads() const { return decoder_threads_; }
  size_t num_lost() const { return lost_.size(); }
  size_t num_failing() const { return num_failing_; }
  // Of those that are not lost: they said why they are not confined, or that
  // they let in everybody.
  size_t num_open() const { return num_open_; }
  // When the first certificate of those that are not lost expires. max():
  // never.
  WallTime first_expiry() const {
    return expiries_.empty() ? WallTime::max() : *expiries_.begin();
  }
  bool full() const { return workers_.size() >= config_.max_workers; }
  // For tests of what calls cost: workers looked at so far.
  uint64_t visits() const { return visits_; }

 private:
  using Queue = std::list<Worker*>;
  void Move(Worker* worker, Queue* to);
  void Count(const Worker& worker, int sign);
  MonotonicTime DueAt(const Queue& queue) const;
  MonotonicTime NextLoss() const;
  std::vector<Worker*> Silent(Now now) const;
  void HeardOfAgain(Worker* worker, Now now);
  void MeasureThread(Now now);
  bool Reweigh(Worker* worker);
  double FirstWeight(const WorkerRegistration& registration) const;

  const MembershipConfig config_;
  std::map<std::string, Worker, std::less<>> workers_;  // by name
  absl::flat_hash_map<SessionId, Worker*> sessions_;
  // Each worker is in one of these; whose turn comes first is in front.
  Queue connected_;  // by last heartbeat
  Queue broken_;     // their streams have ended: by disconnected_at
  Queue lost_;       // by lost_at
  std::optional<MonotonicTime> hold_until_;
  MonotonicTime hold_began_;

  size_t num_ready_ = 0, num_failing_ = 0;  // failing ones are ready
  size_t num_open_ = 0;
  std::multiset<WallTime> expiries_;
  std::map<DecoderClass, size_t> num_ready_of_;
  size_t num_ready_with_engines_ = 0;
  DecoderThreads decoder_threads_;
  // Counts, for weighed workers of the same decoder classes, how many have
  // threads of a weight of 2^(key / 16).
  std::map<std::vector<DecoderClass>, std::map<int, size_t>> thread_weights_;
  double thread_rows_per_s_ = 0;  // median; 0: nobody has measured
  MonotonicTime thread_measured_at_;
  mutable uint64_t visits_ = 0;
};

}  // namespace leat::server
