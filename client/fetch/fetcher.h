// SPDX-License-Identifier: Apache-2.0
//
// Fetcher: decides which worker is asked for which row, and when again. No I/O,
// no clock, no lock.
//
// It holds the window of steps and goes through its rows: each goes to the
// worker that the PeerTable chooses, in a message that Deliveries puts
// together, in place where Leases allows it. If that worker's stream ends, or
// it answers an error that is not the sample's, the row goes to another one.
// Rows of the step that the consumer waits for, and that are late, are asked of
// a second worker too (hedging), within a budget. The first answer wins.
//
// Thread-compatible: the owner locks. Time: callers pass `now`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/batch/step.h"
#include "client/fetch/assignment_table.h"
#include "client/fetch/deliveries.h"
#include "client/fetch/fetcher_config.h"
#include "client/fetch/hedge_budget.h"
#include "client/fetch/lane.h"
#include "client/fetch/leases.h"
#include "client/fetch/peer_table.h"
#include "client/fetch/window.h"
#include "core/clock.h"
#include "core/plan/shard_table.h"
#include "leat/v1/worker.pb.h"

namespace leat::client {

class Fetcher {
 public:
  Fetcher(const FetcherConfig& config, const ShardTable& shards);
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  void SetTable(std::shared_ptr<const AssignmentTable> table);
  const AssignmentTable* table() const { return peers_.table(); }

  // The window: steps in order; the head is the next to be handed out.
  void AddStep(std::shared_ptr<Step> step, MonotonicTime now);
  size_t num_steps() const { return window_.steps.size(); }
  // The bytes of the samples that have been brought for the steps.
  uint64_t brought_bytes() const;
  const Step& head() const { return *window_.steps.front(); }
  // REQUIRES: head().complete().
  std::shared_ptr<Step> PopHead(MonotonicTime now);
  // Steps that could be handed out now.
  size_t num_ready() const;
  // Rows that have been asked and have not come, and streams that are open.
  size_t open_rows() const;
  size_t num_lanes() const;
  // The consumer begins to wait, and ends it. Workers that owed rows of the
  // head as it began cause the wait, each by its share of those that have not
  // come: the last one of them all that is left of it.
  void BeginWait(MonotonicTime now);
  void EndWait(MonotonicTime now);
  // Whether the consumer waits for the head: only then are rows late.
  void set_waiting(bool waiting) { waiting_ = waiting; }

  // What is to be sent now, in order. Sets head().error at its time limit.
  std::vector<LaneMessage> Decide(MonotonicTime now);
  // Lanes that Decide has given up because they are idle: their streams are to
  // be ended. Closed follows.
  std::vector<std::shared_ptr<Lane>> TakeIdle() {
    return std::exchange(idle_, {});
  }
  // What people should know; empty: nothing. Each is told once.
  std::string TakeWarning() { return std::exchange(warning_, {}); }
  // Where the rows are that the consumer waits for, once a step that is waited
  // for as long as `late_note`; empty: nothing.
  std::string TakeNote() { return std::exchange(note_, {}); }
  // Workers that are not reached: as PeerTable has it.
  std::vector<std::string> TakeLooks() { return peers_.TakeLooks(); }
  void Looked(const std::string& address, const rpc::Hindrance& hindrance);
  std::optional<std::vector<PeerTable::Unreached>> TakeUnreached(
      MonotonicTime now) {
    return peers_.TakeUnreached(now);
  }
  // When Decide must be called again if nothing happens.
  MonotonicTime due() const { return due_; }
  // True once after something happened that needs Decide.
  bool TakeDirty() { return std::exchange(window_.dirty, false); }

  // What comes from a lane. nullopt: nothing to copy. kInvalidArgument: the
  // peer broke the protocol; end the stream.
  absl::StatusOr<std::optional<Piece>> Begin(Lane& lane,
                                             const v1::RowsResponse& header,
                                             size_t data_bytes,
                                             MonotonicTime now) {
    return deliveries_.Begin(lane, header, data_bytes, now);
  }
  // The piece has been copied. Returns what is to be copied next, for which the
  // same holds: rows whose step has got other memory meanwhile.
  std::optional<Piece> End(Lane& lane, const Piece& piece, MonotonicTime now) {
    return deliveries_.End(lane, piece, now);
  }
  // A message could not be sent: nothing more is asked until Closed.
  void Break(Lane& lane);
  // The stream's end; last call for the lane.
  void Closed(Lane& lane, const absl::Status& status, MonotonicTime now);

  // Delivery in place. Memory to be lent, and steps to be given other memory,
  // as decided since the last call.
  std::vector<Loan> TakeLoans() { return leases_.TakeLoans(); }
  std::vector<std::shared_ptr<Step>> TakeHomeless() {
    return leases_.TakeHomeless();
  }
  // Memory to be dropped without the owner's lock.
  std::vector<std::shared_ptr<StepMemory>> TakeReleased() {
    return leases_.TakeReleased();
  }
  // The worker's first message; whether its lending socket is to be opened. If
  // so, LendingReady or LendingFailed may follow, then LendingClosed; of a lane
  // that was closed with leases LendingClosed must.
  absl::StatusOr<bool> Opened(Lane& lane, const v1::Opened& opened,
                              MonotonicTime now) {
    peers_.HeardFrom(lane, now);
    return leases_.Opened(lane, opened);
  }
  void LendingReady(Lane& lane) { leases_.LendingReady(lane); }
  // Nothing more is lent here; leases stay.
  void LendingFailed(Lane& lane, const absl::Status& status) {
    leases_.LendingFailed(lane, status);
  }
  // OK may follow another status, if the reply was only late.
  void Lent(Lane& lane, uint64_t memory_id, const absl::Status& status) {
    leases_.Lent(lane, memory_id, status);
  }
  void Returned(Lane& lane, uint64_t memory_id) {
    leases_.Returned(lane, memory_id);
  }
  // The lending socket's end: nothing is written any more.
  void LendingClosed(Lane& lane) { leases_.LendingClosed(lane); }
  // Whether the worker may still write for this consumer.
  static bool HasLeases(const Lane& lane) { return Leases::HasLeases(lane); }
  // Gives a step other memory. What is to be copied now, as of Begin; then
  // FinishMove instead of End.
  // Leaves `buffer` alone if the step no longer needs it.
  std::optional<Piece> Evacuate(const std::shared_ptr<Step>& step,
                                BatchPool::Buffer* buffer) {
    return leases_.Evacuate(step, buffer);
  }
  std::optional<Piece> FinishMove(const Piece& piece) {
    return deliveries_.FinishMove(piece);
  }
  size_t quarantined() const { return leases_.quarantined(); }
  // Final: what LEAT_PLANE asks for cannot be had.
  const absl::Status& plane_error() const { return leases_.plane_error(); }
  // How the newest rows came: "grpc", "shm", "cuda", or several with "+".
  std::string plane() const;

  // Steps in device memory that have become complete; each once, Uploaded
  // follows.
  std::vector<std::shared_ptr<Step>> TakeUploads();
  bool HasUploads() const;
  void Uploaded(Step& step, const absl::Status& status);

  const std::deque<Peer>& peers() const { return peers_.peers(); }
  const FetchCounters& counters() const { return window_.counters; }
  // Peers that were looked at: the work done.
  uint64_t visited() const { return peers_.visited(); }

 private:
  // Puts the time since it was called last down to the workers that owed rows
  // then.
  void NoteWait(MonotonicTime now);
  // Both return whether rows wait because nobody can be asked.
  bool RouteAll(MonotonicTime now, std::vector<LaneMessage>* messages);
  bool RouteStep(const std::shared_ptr<Step>& step, MonotonicTime now,
                 std::vector<LaneMessage>* messages);
  void AskRow(const std::shared_ptr<Step>& step, uint32_t index,
              uint16_t worker, MonotonicTime now,
              std::vector<LaneMessage>* messages);
  void Unhedge(Row& row);
  void Warn(std::string_view why);
  void CheckRefusal();
  void HedgeHead(MonotonicTime now);
  void CheckTimeout(MonotonicTime now);
  void NoteLate(MonotonicTime now);
  absl::Status TimeoutError() const;

  const FetcherConfig config_;
  Window window_;
  PeerTable peers_;
  Leases leases_;
  Deliveries deliveries_;
  HedgeBudget budget_;
  std::vector<std::shared_ptr<Lane>> idle_;
  std::string warning_;
  std::optional<uint64_t> warned_at_;  // rows that had come then
  bool waiting_ = false;
  std::string note_;
  MonotonicTime waiting_since_{};  // as Decide knows it; zero: nobody waits
  bool noted_ = false;             // since then
  MonotonicTime head_since_{};
  // Of the wait under way: the head's epoch and step, those of its rows that
  // have not come with the worker that was asked first as it began, and until
  // when it has been put down.
  std::pair<uint64_t, uint64_t> waited_for_;
  std::vector<std::pair<uint32_t, uint16_t>> owed_;
  MonotonicTime owed_since_{};
  MonotonicTime due_ = MonotonicTime::max();
};

}  // namespace leat::client
