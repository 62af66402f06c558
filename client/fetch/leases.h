// SPDX-License-Identifier: Apache-2.0
//
// Leases: delivery in place. What memory is lent to whom, who may still write
// where, and how a step gets away from a worker that does not answer.
//
// To a worker on this host the owner lends the memory of steps. A row that
// nobody else is asked for is then asked with its place there, and leased until
// every row of its ask has been answered, the worker has said that the ask has
// ended, or the lending socket has reached its end, which may be long after the
// stream's. Rows that are asked a second time come by bytes.
//
// Two invariants keep a row from being written by two. A row is asked in place
// only if nobody else is asked for it; and it is asked of nobody else while it
// is leased in the step's own memory. So in a step's own memory a leased row
// has one possible writer, and every other answer writes to rows without lease.
//
// Example: a step has memory A, row 0 is done there, and row 1 is leased to a
// worker that has stopped.
//   1. Row 1 is to be asked elsewhere. It is leased, so WantMemory puts the
//   step
//      into TakeHomeless, and row 1 waits.
//   2. The owner takes memory B from the pool and calls Evacuate. B becomes the
//      step's memory; A is quarantined: the ask's lease keeps it, and it is
//      neither handed out nor used again. No row is leased in B. Row 0 is
//      kMoving, and is returned as a piece with source A and memory B.
//   3. The owner copies row 0 and calls Deliveries::FinishMove: B is the step's
//      current memory, so row 0 is done. (Were the step in memory C by then,
//      FinishMove would return the same piece with source B and memory C.)
//   4. Row 1 is asked of another worker, and comes into B. The step is
//   complete.
//   5. The stopped worker may write row 1 into A at any time: nobody reads it.
//      If it says `placed` before step 4, row 1 is copied from A to B instead,
//      as kMoving. When its lease ends, A goes back to the pool.
//
// Thread-compatible: the Fetcher's owner locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/fetch/lane.h"
#include "client/fetch/peer_table.h"
#include "client/fetch/window.h"
#include "leat/v1/worker.pb.h"

namespace leat::client {

class Leases {
 public:
  // All outlive this.
  Leases(const FetcherConfig& config, PeerTable* peers, Window* window)
      : config_(config), peers_(*peers), window_(*window) {}

  // Memory to be lent, and steps to be given other memory, as decided since the
  // last call.
  std::vector<Loan> TakeLoans() { return std::exchange(loans_, {}); }
  std::vector<std::shared_ptr<Step>> TakeHomeless() {
    return std::exchange(homeless_, {});
  }
  // Quarantined memory that nothing may write to any more. To be dropped
  // without the owner's lock: it may be unmapped.
  std::vector<std::shared_ptr<StepMemory>> TakeReleased() {
    return std::exchange(released_, {});
  }
  // These have the contracts of Fetcher's functions of these names.
  absl::StatusOr<bool> Opened(Lane& lane, const v1::Opened& opened);
  void LendingReady(Lane& lane);
  void LendingFailed(Lane& lane, const absl::Status& status);
  void Lent(Lane& lane, uint64_t memory_id, const absl::Status& status);
  void Returned(Lane& lane, uint64_t memory_id);
  void LendingClosed(Lane& lane);
  std::optional<Piece> Evacuate(const std::shared_ptr<Step>& step,
                                BatchPool::Buffer* buffer);
  static bool HasLeases(const Lane& lane);
  size_t quarantined() const { return quarantined_; }
  const absl::Status& plane_error() const { return plane_error_; }

  // How a row is to be asked of a worker: if kWait, not before its lane lends.
  enum class Placement : uint8_t { kBytes, kInPlace, kWait };
  Placement PlacementOf(const Step& step, const Row& row, uint16_t worker);
  // A leased row is to be asked elsewhere: its step needs other memory.
  void WantMemory(const std::shared_ptr<Step>& step);
  // The step's memory is offered to every lane that takes some.
  void OfferToAll(const Step& step);
  // Returns the part of a step's memory that the worker is to write to: a GPU's
  // if it has that GPU, else this host's. nullptr: nothing.
  std::shared_ptr<BatchMemory> PartFor(const Lane& lane,
                                       const StepMemory& memory) const;
  // The rows of the ask may be written to `part` of the step's memory.
  static void Begin(OpenAsk& ask, const BatchMemory& part);
  // The caller says that no row of the ask is written any more.
  void EndLease(Lane& lane, OpenAsk& ask);
  // A reference to memory is about to be dropped, which may be the last.
  void Release(const std::shared_ptr<StepMemory>& memory) {
    if (memory && memory->quarantined) released_.push_back(memory);
  }
  // The ask's rows are owed no longer, but may still be written.
  void KeepLease(Lane& lane, uint64_t ask_id, OpenAsk ask);
  // An ask that was withdrawn has ended, or its rows were answered.
  void AskEnded(Lane& lane, uint64_t ask_id);
  void AnsweredEnding(Lane& lane, const v1::RowsResponse& header);
  // The lane has closed: if it has leases it is kept until they end.
  void KeepClosed(const std::shared_ptr<Lane>& lane);

 private:
  bool Forced() const {
    return config_.plane == Plane::kShared || config_.plane == Plane::kDevice;
  }
  void OfferLoan(const std::shared_ptr<Lane>& lane, const Step& step);
  std::vector<Lane*> LanesWithAsks();

  const FetcherConfig& config_;
  PeerTable& peers_;
  Window& window_;
  std::vector<Loan> loans_;
  std::vector<std::shared_ptr<Step>> homeless_;
  std::vector<std::shared_ptr<StepMemory>> released_;
  std::vector<std::shared_ptr<Lane>> closed_lanes_;  // with leases that live
  size_t quarantined_ = 0;  // buffers, with leases that live
  absl::Status plane_error_;
};

}  // namespace leat::client
