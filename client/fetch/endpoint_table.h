// SPDX-License-Identifier: Apache-2.0
//
// EndpointTable: the known workers, and the choice of a worker for each row.
//
// A row is requested from its shard's primary owner, or from another owner
// while the primary owner's backlog would take much longer (spilling); then
// from any worker that the assignment names. If none of these is available, it
// is requested from a worker that the assignment does not name, but that
// answers on an open stream, or that the previous assignment named: a
// coordinator that has lost sight of the workers, or that has just started,
// must not stop a training.
//
// A worker that failed is avoided for a time that doubles, and a worker that
// reports a fault of its own for a longer one; while the consumer waits and no
// other worker is available, for a second at most. A worker with late rows that
// has been silent all that time is suspect until it sends something. If others
// deliver meanwhile, it is considered stopped.
//
// Thread-compatible: the Fetcher's owner locks. Time: callers pass `now`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "client/fetch/assignment_table.h"
#include "client/fetch/fetcher_config.h"
#include "client/fetch/in_flight.h"
#include "client/fetch/worker_endpoint.h"
#include "client/fetch/worker_stream.h"
#include "core/clock.h"
#include "core/plan/job_shards.h"
#include "rpc/tls/tls_probe.h"

namespace leat::client {

class EndpointTable {
 public:
  // All arguments outlive this.
  EndpointTable(const FetcherConfig& config, JobShards shards,
                InFlight* in_flight);

  // Returns the streams of endpoints that only the previous table named. Has no
  // effect if `table` is empty and a non-empty one is known.
  std::vector<std::shared_ptr<WorkerStream>> SetTable(
      std::shared_ptr<const AssignmentTable> table);
  const AssignmentTable* assignment() const { return table_.get(); }
  const std::deque<WorkerEndpoint>& endpoints() const { return endpoints_; }
  WorkerEndpoint& at(uint16_t worker) { return endpoints_[worker]; }
  const AssignmentTable::Worker& WorkerOf(const WorkerStream& stream) const {
    return endpoints_[stream.worker].ref;
  }
  uint64_t num_samples() const { return shards_.num_samples(); }
  // Returns the number of workers that the table names.
  size_t num_named() const { return endpoint_of_.size(); }

  // Announces calls of Choose for many rows.
  void BeginRound() { listed_ = forgave_ = false; }
  // Returns the worker to request the row from now; nullopt: none is available.
  std::optional<uint16_t> Choose(const Step& step, uint32_t index,
                                 MonotonicTime now);
  // Returns the endpoint's stream; if it has none, a new one, and sets *opened.
  const std::shared_ptr<WorkerStream>& StreamOf(uint16_t worker,
                                                MonotonicTime now,
                                                bool* opened = nullptr);
  // Returns when an avoided endpoint is available again; max: none is avoided.
  // Sets *full if another one is available already: then rows wait for room on
  // streams.
  MonotonicTime NextUsable(MonotonicTime now, bool* full) const;
  // Retires streams without requests for `stream_idle` and without outstanding
  // ones: the owner ends them.
  void GiveUpIdleStreams(MonotonicTime now);

  // Reports that the endpoint failed; it is avoided for a while. A failure in
  // that time belongs to an earlier request and does not extend it, unless the
  // endpoint's stream `ended`.
  void Avoid(WorkerEndpoint& endpoint, std::string_view error, bool ended,
             MonotonicTime now);
  // Reports that the endpoint failed by a fault of its own.
  void NoteFault(WorkerEndpoint& endpoint, std::string_view error,
                 MonotonicTime now);
  // Called while the consumer waits and no other worker is available: lets
  // avoided workers be asked now, if they failed `backoff_waiting` ago, the
  // oldest first, up to a bound. A suspect without outstanding rows has no
  // other way to show that it is alive. Returns false if none may be asked;
  // Decide is due when one may. Acts once per round.
  bool AllowEarlyRetry(MonotonicTime now);
  // Returns whether a worker is available that the row is not requested from.
  bool AnyOther(const Row& row, MonotonicTime now);
  // Returns whether another worker is available.
  bool AnyBut(uint16_t worker, MonotonicTime now);
  // Returns whether a worker that has delivered before has nothing outstanding.
  bool AnyIdle(MonotonicTime now);
  // Returns whether every named worker reported a fault of its own.
  bool AllFaulty() const;
  // The worker has no room for client-supplied samples: halves its limit on
  // outstanding ones.
  void ReduceLimit(const WorkerStream& stream);
  // Reports a sign of life of the worker.
  void HeardFrom(WorkerStream& stream, MonotonicTime now);
  // Reports `rows` new rows, from a group of `group_rows`.
  void Delivered(WorkerStream& stream, uint64_t rows, uint64_t bytes,
                 size_t group_rows, MonotonicTime now);
  // Returns whether any worker has delivered after `time`.
  bool DeliveredSince(MonotonicTime time) const { return delivered_at_ > time; }

  enum class Silence : uint8_t {
    kNone,     // or too short: Decide is due when it may change
    kSuspect,  // it gets no new requests for a while
    kStopped,  // its rows are requested from other workers too
  };
  // Returns the state of a worker's silence; the worker has a row of the head
  // outstanding. Each state is returned once.
  Silence Listen(uint16_t worker, const Row& row, MonotonicTime now);
  // Returns the time after which a row of the head is late.
  Duration HedgeDelay() const;
  // Returns why every worker ends its streams for a permanent reason;
  // kFailedPrecondition if the reason prevents reaching it. OK: this is not so
  // for every worker.
  absl::Status Refusal() const;

  // Reports that the endpoint's stream ended before it sent anything.
  void NotReached(WorkerEndpoint& endpoint);
  void Looked(const std::string& address, const rpc::Hindrance& hindrance);
  struct Unreached {
    std::string worker, why;
  };
  // Returns the first few unreachable workers if the coordinator is to be told:
  // they have changed, or the last report is some time ago.
  std::optional<std::vector<Unreached>> TakeUnreached(MonotonicTime now);
  // Returns whether no stream is open, and the reason is known for each named
  // worker.
  bool NoneReached() const;
  // Describes the endpoints and their errors, for people. `row`: of the head.
  std::string Describe(const Row& row) const;
  // Describes the state of all known endpoints, and how many of the step's rows
  // are requested from each.
  std::string DescribeAll(const Step& step, MonotonicTime now) const;
  // Returns how many endpoints were visited to choose or to find one: the work
  // done.
  uint64_t visited() const { return visited_; }

 private:
  uint16_t EndpointFor(const AssignmentTable::Worker& ref);
  void Renew(WorkerEndpoint& endpoint, const AssignmentTable::Worker& ref);
  void FreeUnused();
  // Returns whether the endpoint can take any request.
  bool HasRoom(const WorkerEndpoint& endpoint, MonotonicTime now) const;
  bool Takes(uint16_t worker, const Step& step, uint32_t index,
             bool again) const;
  bool Usable(uint16_t worker, const Step& step, uint32_t index, bool again,
              MonotonicTime now) const;
  bool LastResort(const WorkerEndpoint& endpoint) const;
  void List(MonotonicTime now);
  // Returns whether one that satisfies the predicate is available.
  template <typename Predicate>
  bool CanAskOne(MonotonicTime now, Predicate of);
  std::optional<uint16_t> FirstOf(std::vector<uint16_t>* list, uint32_t shard,
                                  const Step& step, uint32_t index, bool again,
                                  MonotonicTime now);
  uint16_t Spill(uint16_t first, uint32_t shard, const Step& step,
                 uint32_t index, MonotonicTime now) const;
  double Backlog(uint16_t worker, uint32_t more_rows) const;
  Duration Jittered(Duration duration) const;
  // Returns `wanted`, within the limit that the median sets.
  Duration Patience(Duration wanted) const;
  // All changes of a state go through this.
  void Become(WorkerEndpoint& endpoint, EndpointState state);
  // The endpoint is no longer silent. The rest of its backoff remains.
  void Trust(WorkerEndpoint& endpoint, MonotonicTime now);
  // Avoids it for `duration`; it may be asked early if no other is available.
  void LeaveAlone(WorkerEndpoint& endpoint, Duration duration,
                  MonotonicTime now);
  // Returns how long the worker must have sent nothing to be silent.
  Duration LongSilence(const WorkerEndpoint& endpoint) const;
  void Reached(WorkerEndpoint& endpoint);
  bool Refuses(const WorkerEndpoint& endpoint) const;

  const FetcherConfig& config_;
  const JobShards shards_;
  InFlight& in_flight_;
  std::shared_ptr<const AssignmentTable> table_;
  std::vector<uint16_t> endpoint_of_;  // by the table's index
  std::deque<WorkerEndpoint> endpoints_;
  std::unordered_map<std::string, uint16_t> numbers_;  // by name and address
  std::vector<uint16_t> unused_;  // numbers free for other workers
  // For this round: the available workers that the table names, and those of
  // last resort.
  bool listed_ = false, forgave_ = false;
  std::vector<uint16_t> can_, last_;
  size_t silent_ = 0, stopped_ = 0;  // endpoints in that state
  // This many were asked early since then.
  size_t early_retries_ = 0;
  MonotonicTime early_retries_since_{};
  MonotonicTime delivered_at_{};
  MonotonicTime idle_check_ = MonotonicTime::max();
  mutable uint64_t visited_ = 0;
  bool tell_reach_ = false;
  MonotonicTime tell_reach_at_{};
};

// Returns whether an error with this code may go away with time.
bool IsTransient(absl::StatusCode code);
// Returns whether the code indicates a bug of a worker.
bool IsBug(absl::StatusCode code);

}  // namespace leat::client
