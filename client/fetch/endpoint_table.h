// SPDX-License-Identifier: Apache-2.0
//
// EndpointTable: who there is, and which worker a row is asked of.
//
// A row goes to its shard's first owner, or to another owner while the first
// one's backlog would take much longer (spilling); then to any worker that the
// assignment names. If none of these can be asked, it goes to a worker that the
// assignment does not name, but that answers on a stream that lives, or that
// the assignment before named: a coordinator that has lost sight of the
// workers, or that has just started, must not stop a training.
//
// A worker that failed is left alone for a time that doubles, and so is one
// that says that the fault is its own, for longer; while the consumer waits
// and nobody else can be asked, for a second at most. A worker that owes rows
// which are late, and has been silent all that time, is suspect until it says
// something. If others deliver meanwhile it is taken to have stopped.
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
#include "client/fetch/window.h"
#include "client/fetch/worker_endpoint.h"
#include "client/fetch/worker_stream.h"
#include "core/clock.h"
#include "core/plan/shard_table.h"
#include "rpc/tls/tls_probe.h"

namespace leat::client {

class EndpointTable {
 public:
  // All three outlive this.
  EndpointTable(const FetcherConfig& config, const ShardTable& shards,
                Window* window);

  // Returns the streams of endpoints that only the table before named. Without
  // effect if the table is empty, and one that is not is known.
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

  // Choose is about to be called for many rows.
  void BeginRound() { listed_ = forgave_ = false; }
  // Who is to be asked for the row now; nullopt: nobody can be.
  std::optional<uint16_t> Choose(const Step& step, uint32_t index,
                                 MonotonicTime now);
  // The endpoint's stream; a new one if it has none, and then *opened is set.
  const std::shared_ptr<WorkerStream>& StreamOf(uint16_t worker,
                                                MonotonicTime now,
                                                bool* opened = nullptr);
  // When an endpoint that is left alone can be asked again; max: none is left
  // alone. If another one can be asked already, rows wait for room on streams:
  // *full.
  MonotonicTime NextUsable(MonotonicTime now, bool* full) const;
  // Gives the streams up that nothing has been asked of for `stream_idle`, and
  // nothing is open on: their streams are to be ended.
  void GiveUpIdleStreams(MonotonicTime now);

  // The endpoint failed, and is left alone for a while. What fails while it is
  // left alone was asked before and does not lengthen that, unless its stream
  // `ended`.
  void Avoid(WorkerEndpoint& endpoint, std::string_view error, bool ended,
             MonotonicTime now);
  // The endpoint says that it cannot, by its own fault.
  void NoteFault(WorkerEndpoint& endpoint, std::string_view error,
                 MonotonicTime now);
  // The consumer waits, and nobody else can be asked: those that are left alone
  // may be asked now, if that was `backoff_waiting` ago, the oldest first, up
  // to a bound. A suspect that owes nothing has no other way to show that it
  // lives. False: none may be; Decide is due when one may. Acts once a round.
  bool AllowEarlyRetry(MonotonicTime now);
  // Whether somebody can be asked whom the row is not asked of.
  bool AnyOther(const Row& row, MonotonicTime now);
  // Whether another worker can be asked.
  bool AnyBut(uint16_t worker, MonotonicTime now);
  // Whether a worker that has delivered before owes nothing now.
  bool AnyIdle(MonotonicTime now);
  // Every worker that is named reported a fault of its own.
  bool AllFaulty() const;
  // The worker has no room for client-supplied samples: it is to owe half of
  // them.
  void ReduceLimit(const WorkerStream& stream);
  // The worker lives.
  void HeardFrom(WorkerStream& stream, MonotonicTime now);
  // `rows` more have come, which were new, in a group of `group_rows`.
  void Delivered(WorkerStream& stream, uint64_t rows, uint64_t bytes,
                 size_t group_rows, MonotonicTime now);
  // Whether some worker has delivered after `time`.
  bool DeliveredSince(MonotonicTime time) const { return delivered_at_ > time; }

  enum class Silence : uint8_t {
    kNone,     // or not long enough: Decide is due when it may be
    kSuspect,  // it is asked for nothing more for a while
    kStopped,  // all that it owes is to be asked elsewhere, too
  };
  // What the silence of a worker, which owes the head's row, has become. Each
  // is told once.
  Silence Listen(uint16_t worker, const Row& row, MonotonicTime now);
  // After which time a row of the head is late.
  Duration HedgeDelay() const;
  // Why every worker ends its streams for a reason that time does not mend,
  // kFailedPrecondition where it is one that keeps it from being reached; OK:
  // not every one does.
  absl::Status Refusal() const;

  // The endpoint's stream has ended before it said anything.
  void NotReached(WorkerEndpoint& endpoint);
  void Looked(const std::string& address, const rpc::Hindrance& hindrance);
  struct Unreached {
    std::string worker, why;
  };
  // The workers that cannot be reached, the first few, if the coordinator is to
  // be told: they have changed, or it is some time ago.
  std::optional<std::vector<Unreached>> TakeUnreached(MonotonicTime now);
  // No stream lives, and it is known of each named worker why.
  bool NoneReached() const;
  // The endpoints and their errors, for people. `row`: of the head.
  std::string Describe(const Row& row) const;
  // How the endpoints fare that are known, and how many of the step's rows each
  // is asked for.
  std::string DescribeAll(const Step& step, MonotonicTime now) const;
  // Peers that were looked at to choose or to find one: the work done.
  uint64_t visited() const { return visited_; }

 private:
  uint16_t EndpointFor(const AssignmentTable::Worker& ref);
  void Renew(WorkerEndpoint& endpoint, const AssignmentTable::Worker& ref);
  void FreeUnused();
  // Whether the endpoint can be asked for anything.
  bool HasRoom(const WorkerEndpoint& endpoint, MonotonicTime now) const;
  bool Takes(uint16_t worker, const Step& step, uint32_t index,
             bool again) const;
  bool Usable(uint16_t worker, const Step& step, uint32_t index, bool again,
              MonotonicTime now) const;
  bool LastResort(const WorkerEndpoint& endpoint) const;
  void List(MonotonicTime now);
  // Whether one of those can be asked.
  template <typename Predicate>
  bool CanAskOne(MonotonicTime now, Predicate of);
  std::optional<uint16_t> FirstOf(std::vector<uint16_t>* list, uint32_t shard,
                                  const Step& step, uint32_t index, bool again,
                                  MonotonicTime now);
  uint16_t Spill(uint16_t first, uint32_t shard, const Step& step,
                 uint32_t index, MonotonicTime now) const;
  double Backlog(uint16_t worker, uint32_t more_rows) const;
  Duration Jittered(Duration duration) const;
  // What is wanted, within what the median allows.
  Duration Patience(Duration wanted) const;
  // All changes of a state.
  void Become(WorkerEndpoint& endpoint, EndpointState state);
  // The endpoint is silent no longer. What is left of its time stands.
  void Trust(WorkerEndpoint& endpoint, MonotonicTime now);
  // It is left alone for as long, and asked early if nobody else can be.
  void LeaveAlone(WorkerEndpoint& endpoint, Duration duration,
                  MonotonicTime now);
  // How long the worker must have said nothing to be silent.
  Duration LongSilence(const WorkerEndpoint& endpoint) const;
  void Reached(WorkerEndpoint& endpoint);
  bool Refuses(const WorkerEndpoint& endpoint) const;

  const FetcherConfig& config_;
  const ShardTable& shards_;
  Window& window_;
  std::shared_ptr<const AssignmentTable> table_;
  std::vector<uint16_t> endpoint_of_;  // by the table's index
  std::deque<WorkerEndpoint> endpoints_;
  std::unordered_map<std::string, uint16_t> numbers_;  // by name and address
  std::vector<uint16_t> unused_;  // numbers that may be given to other workers
  // In this round: who can be asked for anything, of those that the table names
  // and of the last resort.
  bool listed_ = false, forgave_ = false;
  std::vector<uint16_t> can_, last_;
  size_t silent_ = 0, stopped_ = 0;  // endpoints that are
  // So many have been asked early since then.
  size_t early_retries_ = 0;
  MonotonicTime early_retries_since_{};
  MonotonicTime delivered_at_{};
  MonotonicTime idle_check_ = MonotonicTime::max();
  mutable uint64_t visited_ = 0;
  bool tell_reach_ = false;
  MonotonicTime tell_reach_at_{};
};

// Whether time may mend what the code says.
bool IsTransient(absl::StatusCode code);
// A bug of a worker, by its code.
bool IsBug(absl::StatusCode code);

}  // namespace leat::client
