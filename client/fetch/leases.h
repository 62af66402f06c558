// SPDX-License-Identifier: Apache-2.0
//
// Leases: delivery in place. What memory is shared with whom, who may still
// write where, and how a step gets away from a worker that does not answer.
//
// With a worker on this host the owner shares the memory of steps. A row that
// nobody else is asked for is then asked with its place there, and leased until
// every row of its request has been answered, the worker has said that the
// request has ended, or the memory socket has reached its end, which may be
// long after the stream's. Rows that are asked a second time come by bytes.
//
// Two invariants keep a row from being written by two. A row is asked in place
// only if nobody else is asked for it; and it is asked of nobody else while it
// is leased in the step's own memory. So in a step's own memory a leased row
// has one possible writer, and every other answer writes to rows without lease.
//
// Example: a step has memory A, row 0 is done there, and row 1 is leased to a
// worker that has stopped.
//   1. Row 1 is to be asked elsewhere. It is leased, so WantMemory puts the
//      step into Decisions::to_move, and row 1 waits.
//   2. The owner takes memory B from the pool and calls MoveToNewBuffer. B
//      becomes the step's memory; A is quarantined: the request's lease keeps
//      it, and it is neither handed out nor used again. No row is leased in B.
//      Row 0 is kMoving, and is returned as a piece from A to B.
//   3. The owner copies row 0 and calls Deliveries::FinishMove: B is the step's
//      current memory, so row 0 is done. (Were the step in memory C by then,
//      the piece would be moved once more, from B to C.)
//   4. Row 1 is asked of another worker, and comes into B: the step is whole.
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
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/fetch/endpoint_table.h"
#include "client/fetch/window.h"
#include "client/fetch/worker_stream.h"
#include "leat/v1/worker.pb.h"

namespace leat::client {

class Leases {
 public:
  // All outlive this.
  Leases(const FetcherConfig& config, EndpointTable* endpoints, Window* window)
      : config_(config), endpoints_(*endpoints), window_(*window) {}

  // The worker's first message; whether its memory socket is to be opened. If
  // so, SharingReady or SharingFailed may follow, then SharingClosed; of a
  // stream that was closed with leases SharingClosed must.
  absl::StatusOr<bool> Opened(WorkerStream& stream, const v1::Opened& opened,
                              MonotonicTime now);
  void SharingReady(WorkerStream& stream);
  // Nothing more is shared here; leases stay.
  void SharingFailed(WorkerStream& stream, const absl::Status& status);
  // OK may follow another status, if the reply was only late.
  void Shared(WorkerStream& stream, uint64_t memory_id,
              const absl::Status& status);
  void Returned(WorkerStream& stream, uint64_t memory_id);
  // The memory socket's end: nothing is written any more.
  void SharingClosed(WorkerStream& stream);
  // Gives a step other memory. Returns the rows that are to be copied there;
  // Deliveries::FinishMove follows. Leaves `buffer` alone if the step no longer
  // needs it.
  std::optional<MovePiece> MoveToNewBuffer(const std::shared_ptr<Step>& step,
                                           BatchPool::Buffer* buffer);
  // Whether the worker may still write for this consumer.
  static bool HasLeases(const WorkerStream& stream);
  size_t quarantined() const { return quarantined_; }
  // Final: what LEAT_TRANSPORT asks for cannot be had.
  const absl::Status& transport_error() const { return transport_error_; }

  // How a row is to be asked of a worker: if kWait, not before its stream
  // shares.
  enum class Placement : uint8_t { kBytes, kInPlace, kWait };
  Placement PlacementOf(const Step& step, const Row& row, uint16_t worker);
  // A leased row is to be asked elsewhere: its step needs other memory.
  void WantMemory(const std::shared_ptr<Step>& step);
  // The step's memory is offered to every stream that takes some.
  void OfferToAll(const Step& step);
  // Returns the part of a step's memory that the worker is to write to: a GPU's
  // if it has that GPU, else this host's. nullptr: nothing.
  std::shared_ptr<BatchMemory> PartFor(const WorkerStream& stream,
                                       const StepMemory& memory) const;
  // The rows of the request may be written to `part` of the step's memory.
  static void Begin(OpenRequest& request, const BatchMemory& part);
  // The caller says that no row of the request is written any more.
  void EndLease(WorkerStream& stream, OpenRequest& request);
  // A reference to memory is about to be dropped, which may be the last.
  void Release(const std::shared_ptr<StepMemory>& memory) {
    if (memory && memory->quarantined)
      window_.decided.released.push_back(memory);
  }
  // The request's rows are owed no longer, but may still be written.
  void KeepLease(WorkerStream& stream, uint64_t request_id,
                 OpenRequest request);
  // A request that was withdrawn has ended, or its rows were answered.
  void RequestEnded(WorkerStream& stream, uint64_t request_id);
  void AnsweredEnding(WorkerStream& stream, const v1::RowsResponse& header);
  // The stream has closed: if it has leases it is kept until they end.
  void KeepClosed(const std::shared_ptr<WorkerStream>& stream);

 private:
  bool Forced() const {
    return config_.transport == Transport::kShared ||
           config_.transport == Transport::kDevice;
  }
  void OfferMemory(const std::shared_ptr<WorkerStream>& stream,
                   const Step& step);
  bool NeedsToMove(const std::shared_ptr<Step>& step) const;
  // Counts the leases on memory that has just been quarantined.
  void CountStale(const std::shared_ptr<StepMemory>& memory);

  const FetcherConfig& config_;
  EndpointTable& endpoints_;
  Window& window_;
  // Closed streams whose leases still live.
  std::vector<std::shared_ptr<WorkerStream>> closed_streams_;
  size_t quarantined_ = 0;  // buffers, with leases that live
  absl::Status transport_error_;
};

}  // namespace leat::client
