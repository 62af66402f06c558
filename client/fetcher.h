// SPDX-License-Identifier: Apache-2.0
//
// Fetcher: decides which worker is asked for which row, and when again. The
// window of steps, the workers as this consumer met them, what is asked of
// whom, fail-over, hedging and time limits. No I/O, no clock, no lock.
//
// A row goes to its shard's first owner, or to another owner while the first
// one's backlog would take much longer (spilling). If that worker's stream
// ends, or it answers an error that is not the sample's, the row goes to the
// next owner at once, then to any worker; a worker that failed is left alone
// for a time that doubles. Rows of the step that the consumer waits for, and
// that are late, are asked of a second worker too (hedging); a worker that owes
// such rows and has been silent all that time is suspect: all it owes is asked
// elsewhere, until it delivers again. The first answer wins (client/step.h).
//
// A Lane is one stream to a worker, from the first ask to its end. Thread-
// compatible; the owner locks. Time: callers pass `now`.
//
// Delivery in place (client/fetcher_lend.cc). To a worker on this host the
// owner lends the memory of steps; a row that nobody else is asked for is then
// asked with its place there, and leased (client/step.h) until every row of its
// ask has been answered, the worker has said that the ask has ended, or the
// lending socket has reached its end, which may be long after the stream's.
// Rows that are asked a second time come by bytes. Before a leased row is asked
// elsewhere its step gets other memory; a late answer is copied from the old.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/assignment_table.h"
#include "client/latency.h"
#include "client/step.h"
#include "core/clock.h"
#include "core/shard_table.h"
#include "leat/v1/worker.pb.h"

namespace leat::client {

class Link;

// How rows may come (LEAT_PLANE).
enum class Plane : uint8_t {
  kAuto,    // in place where that can be had
  kGrpc,    // by bytes only
  kShared,  // in place, in shared memory, or not at all
  kDevice,  // in place, in a GPU's memory, or not at all
};
std::string_view Name(Plane plane);
// kInvalidArgument: not a plane.
absl::StatusOr<Plane> PlaneOf(std::string_view name);

struct FetcherConfig {
  // Behaviour.
  Duration hedge_min = std::chrono::milliseconds(100);
  double hedge_p95_factor = 3;  // a row is late after this × p95 of all rows
  Duration hedge_cold = std::chrono::seconds(1);  // while p95 is not known
  // A worker that owes rows is silent after this, or after p95 if longer.
  Duration silence_min = std::chrono::milliseconds(300);
  Duration backoff_min = std::chrono::milliseconds(100);
  Duration backoff_max = std::chrono::seconds(5);
  Duration row_timeout = std::chrono::minutes(2);
  uint32_t max_row_errors = 6;  // of workers, not of the sample; then final
  // A row spills from the first owner when its backlog lasts `spill_factor`
  // times as long as another owner's with `spill_rows` rows more.
  double spill_factor = 1.5;
  uint32_t spill_rows = 8;
  // When every worker has ended this many streams in a row for a reason that
  // time does not mend (no such job, wrong token, ...), that is final too.
  uint32_t max_refusals = 4;
  Plane plane = Plane::kAuto;
  std::string needed;  // what not every worker has, for people; may be empty
  // Bounds.
  uint32_t max_ask_rows = 8192;  // of one message
  // Of samples that are brought: in one message, if it has more than one, and
  // outstanding on one stream, where the last ask may go beyond.
  uint64_t max_ask_bytes = 1 << 20;
  uint64_t max_lane_bytes = 32 << 20;
  uint32_t max_lane_rows = 65536;   // outstanding on one stream
  uint32_t max_lane_groups = 4096;  // answers begun on one stream
  // Rows come by bytes while so many buffers wait for their leases' ends; as
  // many steps as the window has may add one each.
  uint32_t max_quarantined = 8;
};

// Part of an answer, being received; or rows on their way from memory to
// memory.
struct Group {
  uint64_t id = 0;  // unique in the Fetcher
  uint64_t ask_id = 0;
  std::shared_ptr<Step> step;
  std::vector<uint32_t> indices;  // of the step's rows, in the group's order
  std::vector<uint8_t> mine;      // which this piece may write
  uint64_t payload_bytes = 0;
  uint64_t received = 0;
  std::shared_ptr<StepMemory> memory;  // where it is written
  std::shared_ptr<StepMemory> source;  // where it is copied from; null: a frame
};

struct OpenAsk {
  std::shared_ptr<Step> step;
  std::vector<uint32_t> indices;
  size_t open = 0;          // rows not answered
  uint64_t open_bytes = 0;  // of their samples, if they are brought
  MonotonicTime asked_at{};
  std::shared_ptr<StepMemory> memory;  // where they are written; null: by bytes
  bool on_device = false;              // in the device's part of it
  bool leased = false;                 // the worker may still write there
  std::vector<uint32_t> unanswered;    // of an ask in Lane::ending
};

// What a worker takes of this consumer's memory.
struct Lending {
  enum class State : uint8_t {
    kUnknown,  // the worker has not said
    kOpening,
    kReady,
    kNone,  // it takes none, or no longer
  };
  State state = State::kUnknown;
  std::vector<std::string> device_uuids;  // GPUs whose memory it takes
  std::unordered_set<uint64_t> lent;      // ids of memory
  std::unordered_set<uint64_t> asked;     // not answered yet
  std::unordered_set<uint64_t> refused;
  size_t stale = 0;  // its leases on quarantined memory
};

struct Lane {
  uint16_t worker = 0;
  bool broken = false;  // nothing more is asked here; its end will be told
  bool closed = false;  // it has been told
  size_t open_rows = 0;
  uint64_t open_bytes = 0;  // of their samples, if they are brought
  MonotonicTime last_delivery{};
  MonotonicTime
      busy_since{};  // its last group came, or its first row was asked
  std::unordered_map<uint64_t, OpenAsk> asks;                   // by id
  std::unordered_map<uint64_t, std::shared_ptr<Group>> groups;  // peer's id
  Lending lending;
  // Withdrawn, or of a closed lane, with leases that live.
  std::unordered_map<uint64_t, OpenAsk> ending;
  std::shared_ptr<Link> link;  // the owner's; not used here
};

// A worker as this consumer met it.
struct Peer {
  AssignmentTable::Worker ref;
  bool present = false;  // in the newest table
  bool suspect = false;  // silent
  std::shared_ptr<Lane> lane;
  MonotonicTime avoid_until{};
  uint32_t failures_in_row = 0;
  uint64_t failures = 0;
  uint64_t rows = 0;
  uint64_t bytes = 0;
  double row_ns = 0;  // that a row takes it, moving average; 0: not known
  Plane plane = Plane::kAuto;  // of its newest rows; kAuto: none
  std::string last_error;
  absl::StatusCode last_code = absl::StatusCode::kOk;  // of a stream's end
};

struct FetchCounters {
  uint64_t rows = 0, bytes = 0;
  uint64_t hedged_rows = 0, failed_over_rows = 0, duplicate_rows = 0;
  uint64_t payload_copies = 0;
  uint64_t placed_rows = 0;      // written in place by their worker
  uint64_t evacuated_steps = 0;  // moved to other memory
};

class Fetcher {
 public:
  // A message to a lane: ask for rows, or (rows empty) withdraw `ask_id`, or
  // (0) open it only.
  struct Action {
    std::shared_ptr<Lane> lane;
    uint64_t ask_id = 0;
    uint64_t epoch = 0;
    uint64_t step = 0;
    std::vector<uint32_t> rows;
    std::vector<uint64_t> samples;
    uint64_t memory_id = 0;                  // 0: by bytes
    std::vector<uint32_t> places;            // in that memory, parallel to rows
    std::shared_ptr<const Brought> brought;  // the samples; null: stored ones
    uint64_t brought_bytes = 0;
  };
  // Memory that is to be lent to a lane's worker.
  struct Loan {
    std::shared_ptr<Lane> lane;
    std::shared_ptr<BatchMemory> memory;
  };
  // A piece that is to be copied now. From the group's source if it has one:
  // step->CopyRows(*source, *memory, indices, mine); else from the frame:
  // step->Scatter(*memory, indices, mine, offset, ...).
  struct Piece {
    std::shared_ptr<Group> group;
    uint64_t peer_group = 0;
    uint64_t offset = 0;
    bool last = false;
  };

  Fetcher(const FetcherConfig& config, const ShardTable& shards);

  void SetTable(std::shared_ptr<const AssignmentTable> table);
  const AssignmentTable* table() const { return table_.get(); }

  // The window: steps in order; the head is the next to be handed out.
  void AddStep(std::shared_ptr<Step> step, MonotonicTime now);
  size_t num_steps() const { return steps_.size(); }
  // Of the samples that have been brought for them.
  uint64_t brought_bytes() const;
  const Step& head() const { return *steps_.front(); }
  // REQUIRES: head().complete().
  std::shared_ptr<Step> PopHead(MonotonicTime now);
  // Whether the consumer waits for the head: only then are rows late.
  void set_waiting(bool waiting) { waiting_ = waiting; }

  // What is to be sent now, in order. Sets head().error at its time limit.
  std::vector<Action> Decide(MonotonicTime now);
  // When Decide must be called again if nothing happens.
  MonotonicTime due() const { return due_; }
  // True once after something happened that needs Decide.
  bool TakeDirty() { return std::exchange(dirty_, false); }

  // What comes from a lane. nullopt: nothing to copy. kInvalidArgument: the
  // peer broke the protocol; end the stream.
  absl::StatusOr<std::optional<Piece>> Begin(Lane& lane,
                                             const v1::RowsResponse& header,
                                             size_t data_bytes,
                                             MonotonicTime now);
  // The piece has been copied. Returns what is to be copied next, for which the
  // same holds: rows whose step has got other memory meanwhile.
  std::optional<Piece> End(Lane& lane, const Piece& piece, MonotonicTime now);
  // A message could not be sent: nothing more is asked until Closed.
  void Break(Lane& lane);
  // The stream's end; last call for the lane.
  void Closed(Lane& lane, const absl::Status& status, MonotonicTime now);

  // Delivery in place. Memory to be lent, and steps to be given other memory,
  // as decided since the last call.
  std::vector<Loan> TakeLoans() { return std::exchange(loans_, {}); }
  std::vector<std::shared_ptr<Step>> TakeHomeless() {
    return std::exchange(homeless_, {});
  }
  // The worker's first message; whether its lending socket is to be opened. If
  // so, LendingReady or LendingFailed may follow, then LendingClosed; of a lane
  // that was closed with leases LendingClosed must.
  absl::StatusOr<bool> Opened(Lane& lane, const v1::Opened& opened);
  void LendingReady(Lane& lane);
  // Nothing more is lent here; leases stay.
  void LendingFailed(Lane& lane, const absl::Status& status);
  // OK may follow another status, if the reply was only late.
  void Lent(Lane& lane, uint64_t memory_id, const absl::Status& status);
  void Returned(Lane& lane, uint64_t memory_id);
  // The lending socket's end: nothing is written any more.
  void LendingClosed(Lane& lane);
  // Whether the worker may still write for this consumer.
  static bool HasLeases(const Lane& lane);
  // Gives a step other memory. What is to be copied now, as of Begin; then
  // Moved instead of End.
  // Leaves `buffer` alone if the step no longer needs it.
  std::optional<Piece> Evacuate(const std::shared_ptr<Step>& step,
                                BatchPool::Buffer* buffer);
  std::optional<Piece> Moved(const Piece& piece);
  size_t quarantined() const { return quarantined_; }
  // Final: what LEAT_PLANE asks for cannot be had.
  const absl::Status& plane_error() const { return plane_error_; }
  // Of the newest rows: "grpc", "shm", "cuda", or several joined by "+".
  std::string plane() const;

  // Steps in device memory that have become complete; each once, Uploaded
  // follows.
  std::vector<std::shared_ptr<Step>> TakeUploads();
  bool HasUploads() const;
  void Uploaded(Step& step, const absl::Status& status);

  const std::deque<Peer>& peers() const { return peers_; }
  const FetchCounters& counters() const { return counters_; }

 private:
  std::optional<uint16_t> Choose(const Row& row, uint64_t sample,
                                 MonotonicTime now) const;
  uint16_t Spill(uint16_t first, uint32_t shard, const Row& row,
                 MonotonicTime now) const;
  double Backlog(uint16_t worker, uint32_t more_rows) const;
  bool Usable(uint16_t worker, const Row& row, bool again,
              MonotonicTime now) const;
  uint16_t PeerFor(const AssignmentTable::Worker& ref);
  void RouteStep(const std::shared_ptr<Step>& step, MonotonicTime now,
                 std::vector<Action>* actions);
  void AddToAsk(const std::shared_ptr<Step>& step, uint32_t index,
                uint16_t worker, bool in_place, MonotonicTime now,
                size_t first_action, std::vector<Action>* actions);
  void HedgeHead(MonotonicTime now);
  void SuspectIfSilent(uint16_t worker, const Row& row, MonotonicTime now);
  void AskElsewhere(Lane& lane);
  enum class Placement : uint8_t { kBytes, kInPlace, kWait };
  Placement PlacementOf(const Step& step, const Row& row, uint16_t worker);
  bool Forced() const {
    return config_.plane == Plane::kShared || config_.plane == Plane::kDevice;
  }
  void WantMemory(const std::shared_ptr<Step>& step);
  void OfferLoan(const std::shared_ptr<Lane>& lane, const Step& step);
  std::shared_ptr<BatchMemory> PartFor(const Lane& lane,
                                       const StepMemory& memory) const;
  void OpenLane(uint16_t worker, std::vector<Action>* actions);
  std::vector<Lane*> LanesWithAsks();
  void CheckTimeout(MonotonicTime now);
  void CheckRefusals();
  absl::Status TimeoutError() const;
  Duration HedgeDelay() const;

  absl::StatusOr<std::shared_ptr<Group>> Claim(Lane& lane, OpenAsk& ask,
                                               const v1::RowsResponse& header);
  absl::Status RowError(Lane& lane, const v1::RowsResponse& header,
                        MonotonicTime now);
  absl::StatusOr<std::optional<Piece>> Placed(Lane& lane,
                                              const v1::RowsResponse& header,
                                              size_t data_bytes,
                                              MonotonicTime now);
  absl::Status AskEnded(Lane& lane, uint64_t ask_id);
  void AnsweredEnding(Lane& lane, const v1::RowsResponse& header);
  void EndLease(Lane& lane, OpenAsk& ask);
  void KeepLease(Lane& lane, uint64_t ask_id, OpenAsk ask);
  void HeardFrom(Lane& lane, MonotonicTime now);
  void CountRows(Lane& lane, const Group& group, uint64_t rows,
                 MonotonicTime now);
  void MeasureRow(Lane& lane, Peer& peer, size_t rows, MonotonicTime now) const;
  void Answered(Lane& lane, uint64_t ask_id, std::span<const uint32_t> indices);
  void Abandon(Group& group);
  void MakePending(Step& step, uint32_t index);
  void Avoid(Peer& peer, std::string_view error, MonotonicTime now);
  void Completed(const Step* step);

  const FetcherConfig config_;
  const ShardTable& shards_;
  std::shared_ptr<const AssignmentTable> table_;
  std::vector<uint16_t> peer_of_;  // by the table's index
  std::deque<Peer> peers_;
  std::deque<std::shared_ptr<Step>> steps_;
  std::vector<Action> withdrawals_;
  std::vector<Loan> loans_;
  std::vector<std::shared_ptr<Step>> homeless_;
  std::vector<std::shared_ptr<Lane>> closed_lanes_;  // with leases that live
  size_t quarantined_ = 0;  // buffers, with leases that live
  absl::Status plane_error_;
  uint64_t next_ask_ = 1;
  uint64_t next_group_ = 1;
  bool waiting_ = false;
  bool dirty_ = false;
  bool starved_ = false;  // rows wait for room on a lane
  MonotonicTime head_since_{};
  MonotonicTime due_ = MonotonicTime::max();
  LatencyHistogram latency_;
  FetchCounters counters_;
};

}  // namespace leat::client
