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
// Weights: one worker's share of the shards, relative. It starts as the number
// of threads, times what a thread counts of workers alike (of the same decoder
// classes: a GPU's counts more), and follows the measured capacity once there
// is one, in units of the typical capacity of a thread (the median over
// workers), so that a cluster of equal machines keeps its weights whatever the
// work costs. Steps of 2^(1/4) with hysteresis, and only after several reports
// agree: noise moves no shard. A machine that comes back keeps its weight.
//
// Thread-compatible; the owner locks. Reads no clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/types.h"

namespace leat::server {

struct MembershipConfig {
  Duration lost_after = std::chrono::seconds(3);
  Duration reconnect_grace = std::chrono::milliseconds(500);
  Duration forget_after = std::chrono::minutes(10);
  size_t max_workers = 20'000;  // remembered ones included
  // A capacity this far from the weight, either way, for so many reports in a
  // row changes the weight.
  double weight_tolerance = 1.25;
  int weight_reports = 3;
};

class Membership {
 public:
  struct Worker {
    WorkerRegistration registration;
    SessionId session = 0;  // 0: its stream has ended
    bool drained = false;
    bool lost = false;
    double weight = 1;
    bool weighed = false;  // by its capacity
    WorkerStats stats;
    WallTime joined_at, last_heartbeat_at;
    MonotonicTime last_heartbeat, lost_at;
    std::optional<MonotonicTime> disconnected_at;
    int deviations = 0;

    WorkerState state() const {
      return lost      ? WorkerState::kLost
             : drained ? WorkerState::kDraining
                       : WorkerState::kReady;
    }
    bool Has(DecoderClass decoder_class) const;
  };

  explicit Membership(const MembershipConfig& config) : config_(config) {}

  // Returns the session that was replaced, or 0.
  SessionId Register(const WorkerRegistration& registration, SessionId session,
                     bool drained, Now now);
  // True: its state or weight changed.
  bool Heartbeat(Worker* worker, const WorkerStats& stats, Now now);
  // `left`: it said good-bye and is forgotten; otherwise it may come back.
  // True: the set of workers changed now.
  bool Disconnect(SessionId session, bool left, Now now);
  // True: known and changed.
  bool SetDrained(std::string_view name, bool drained);
  // Marks lost and forgets what is due. Returns the newly lost.
  std::vector<std::string> Expire(Now now);
  // When Expire has something to do, at the earliest. max(): never.
  MonotonicTime NextDeadline() const;

  // nullptr: none.
  Worker* Find(std::string_view name);
  Worker* Find(SessionId session);
  const std::map<std::string, Worker, std::less<>>& workers() const {
    return workers_;
  }
  size_t num_ready() const;
  size_t num_ready(DecoderClass decoder_class) const;
  bool full() const { return workers_.size() >= config_.max_workers; }

 private:
  MonotonicTime LostAt(const Worker& worker) const;
  void MeasureThread(Now now);
  bool Reweigh(Worker* worker);
  double FirstWeight(const WorkerRegistration& registration) const;

  const MembershipConfig config_;
  std::map<std::string, Worker, std::less<>> workers_;  // by name
  std::map<SessionId, std::string> sessions_;
  double thread_rows_per_s_ = 0;  // median; 0: nobody has measured
  MonotonicTime thread_measured_at_;
};

}  // namespace leat::server
