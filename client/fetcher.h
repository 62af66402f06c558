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
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
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
  // Bounds.
  uint32_t max_ask_rows = 8192;     // of one message
  uint32_t max_lane_rows = 65536;   // outstanding on one stream
  uint32_t max_lane_groups = 4096;  // answers begun on one stream
};

// Part of an answer, being received.
struct Group {
  uint64_t id = 0;  // unique in the Fetcher
  uint64_t ask_id = 0;
  std::shared_ptr<Step> step;
  std::vector<uint32_t> indices;  // of the step's rows, in the group's order
  std::vector<uint8_t> mine;      // which this piece may write
  uint64_t payload_bytes = 0;
  uint64_t received = 0;
};

struct OpenAsk {
  std::shared_ptr<Step> step;
  std::vector<uint32_t> indices;
  size_t open = 0;  // rows not answered
  MonotonicTime asked_at{};
};

struct Lane {
  uint16_t worker = 0;
  bool broken = false;  // nothing more is asked here; its end will be told
  bool closed = false;  // it has been told
  size_t open_rows = 0;
  MonotonicTime last_delivery{};
  MonotonicTime
      busy_since{};  // its last group came, or its first row was asked
  std::unordered_map<uint64_t, OpenAsk> asks;                   // by id
  std::unordered_map<uint64_t, std::shared_ptr<Group>> groups;  // peer's id
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
  std::string last_error;
  absl::StatusCode last_code = absl::StatusCode::kOk;  // of a stream's end
};

struct FetchCounters {
  uint64_t rows = 0, bytes = 0;
  uint64_t hedged_rows = 0, failed_over_rows = 0, duplicate_rows = 0;
  uint64_t payload_copies = 0;
};

class Fetcher {
 public:
  // A message to a lane: ask for rows, or (rows empty) withdraw `ask_id`.
  struct Action {
    std::shared_ptr<Lane> lane;
    uint64_t ask_id = 0;
    uint64_t epoch = 0;
    uint64_t step = 0;
    std::vector<uint32_t> rows;
    std::vector<uint64_t> samples;
  };
  // A piece that is to be copied now: group->step->Scatter(indices, mine, ...).
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
  void End(Lane& lane, const Piece& piece, MonotonicTime now);
  // A message could not be sent: nothing more is asked until Closed.
  void Break(Lane& lane);
  // The stream's end; last call for the lane.
  void Closed(Lane& lane, const absl::Status& status, MonotonicTime now);

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
                uint16_t worker, MonotonicTime now, size_t first_action,
                std::vector<Action>* actions);
  void HedgeHead(MonotonicTime now);
  void SuspectIfSilent(uint16_t worker, const Row& row, MonotonicTime now);
  void AskElsewhere(Lane& lane);
  void CheckTimeout(MonotonicTime now);
  void CheckRefusals();
  absl::Status TimeoutError() const;
  Duration HedgeDelay() const;

  absl::StatusOr<std::shared_ptr<Group>> Claim(Lane& lane, OpenAsk& ask,
                                               const v1::RowsResponse& header);
  absl::Status RowError(Lane& lane, const v1::RowsResponse& header,
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
