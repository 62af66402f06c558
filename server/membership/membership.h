// SPDX-License-Identifier: Apache-2.0
//
// Membership: the known workers, their states and their weights.
//
// A worker is READY or DRAINING while its heartbeats arrive, and LOST when none
// arrived for `lost_after`, or when its stream broke and it did not come back
// within `reconnect_grace`. A heartbeat on a live stream brings a lost worker
// back. A name that registers again replaces the older session. A lost worker
// is remembered for `forget_after`, so that people can see it.
//
// Many workers that fall silent at once have probably not all died: more likely
// the coordinator was stopped, or cut off from them. So when a worker is due to
// be lost and more than `hold_share` of the members are silent (and at least
// two), or when Expire is called late, no worker is lost for another
// `lost_after`. Each worker that reports again prolongs this hold, up to
// `max_holds` × `lost_after`. A worker is spared once per silence.
//
// A weight is a worker's relative share of the shards. It starts as the number
// of threads, times the weight of a thread of similar workers (with the same
// decoder classes: a GPU's is larger). Once a capacity is measured, the weight
// follows it, in units of the typical capacity of a thread (the median over
// workers), so that a cluster of equal machines keeps its weights whatever the
// work costs. It moves in steps of 2^(1/4) with hysteresis, and only after
// several reports agree: noise moves no shard. Later a capacity depends as much
// on a worker's caches as on its machine, and a shard that moves leaves its
// cached records behind. From then on a weight changes only for a larger
// difference that lasts. A machine that comes back keeps its weight.
//
// Cost: Register O(log W), Heartbeat O(1) and once a second O(W), Expire O(1)
// per worker that is due. Thread-compatible; the owner locks. Reads no clock.
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
  // The weight changes after a capacity was this far from it, either way, in so
  // many consecutive reports; the limits differ between a worker's first
  // reports of a capacity and later ones.
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
    bool weighed = false;  // from its capacity
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
    bool spared_ = false;                  // spared by a hold, in this silence
  };
  struct Expired {
    std::vector<std::string> lost;  // newly
    size_t held = 0;                // members that a new hold spares
  };

  explicit Membership(const MembershipConfig& config) : config_(config) {}

  // Returns the session that was replaced, or 0.
  SessionId Register(const WorkerRegistration& registration, SessionId session,
                     bool drained, Now now);
  // Returns whether its state, its weight or its right to own shards changed.
  bool Heartbeat(Worker* worker, WorkerReport report, StorageFailures failures,
                 Now now);
  // `left`: the worker said good-bye and is forgotten; otherwise it may come
  // back. Returns whether the set of workers changed now.
  bool Disconnect(SessionId session, bool left, Now now);
  // Returns true if it is known and changed.
  bool SetDrained(std::string_view name, bool drained);
  // The same for a worker that its pool retires. A worker that registers again
  // is not retiring.
  bool SetRetiring(std::string_view name, bool retiring);
  // Marks workers lost, and forgets lost ones, when they are due.
  Expired Expire(Now now);
  // Returns the earliest time at which Expire has work. max(): never.
  MonotonicTime NextDeadline() const;
  // Returns nullopt if there is no hold now.
  std::optional<MonotonicTime> held_until() const { return hold_until_; }

  // Return nullptr if there is none.
  Worker* Find(std::string_view name);
  Worker* Find(SessionId session);
  const std::map<std::string, Worker, std::less<>>& workers() const {
    return workers_;
  }
  size_t num_ready() const { return num_ready_; }
  size_t num_ready(DecoderClass decoder_class) const;
  size_t num_ready_with_engines() const { return num_ready_with_engines_; }
  // Threads of the READY workers, by class and digest (zero: not reported).
  using DecoderThreads = std::map<std::pair<DecoderClass, Digest>, size_t>;
  const DecoderThreads& decoder_threads() const { return decoder_threads_; }
  size_t num_lost() const { return lost_.size(); }
  size_t num_failing() const { return num_failing_; }
  // Returns how many workers that are not lost reported that they are not
  // confined, that they accept every caller, or that they do not use their
  // files with certificates and tokens as they are now.
  size_t num_open() const { return num_open_; }
  // Returns the first time at which the certificate of a worker that is not
  // lost becomes a finding (CertificateTerm::warn_at). max(): never.
  WallTime first_expiry_warning() const {
    return expiry_warnings_.empty() ? WallTime::max()
                                    : *expiry_warnings_.begin();
  }
  bool full() const { return workers_.size() >= config_.max_workers; }
  // For tests of the cost of calls: the number of workers visited so far.
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
  // Each worker is in one of these queues, the one due first in front.
  Queue connected_;  // by last heartbeat
  Queue broken_;     // streams have ended; by disconnected_at
  Queue lost_;       // by lost_at
  std::optional<MonotonicTime> hold_until_;
  MonotonicTime hold_began_;

  size_t num_ready_ = 0, num_failing_ = 0;  // failing ones are ready
  size_t num_open_ = 0;
  std::multiset<WallTime> expiry_warnings_;
  std::map<DecoderClass, size_t> num_ready_of_;
  size_t num_ready_with_engines_ = 0;
  DecoderThreads decoder_threads_;
  // Counts, per set of decoder classes, the weighed workers whose threads have
  // a weight of 2^(key / 16).
  std::map<std::vector<DecoderClass>, std::map<int, size_t>> thread_weights_;
  double thread_rows_per_s_ = 0;  // median; 0: no worker has measured
  MonotonicTime thread_measured_at_;
  mutable uint64_t visits_ = 0;
};

}  // namespace leat::server
