// SPDX-License-Identifier: Apache-2.0
//
// Leases: delivery in place. It tracks which memory is shared with which
// worker, which workers may still write where, and how a step leaves a worker
// that does not answer.
//
// The owner shares the memory of steps with workers on this host. A row that is
// requested from no other worker is then requested with its place in that
// memory, and leased until every row of its request has been answered, the
// worker has said that the request has ended, or the memory socket has closed,
// which may be long after the stream. Rows that are requested a second time
// come as bytes.
//
// Two invariants ensure that a row has a single writer. A row is requested in
// place only if no other request for it is open; and it is not requested from
// another worker while it is leased in the step's own memory. In a step's own
// memory a leased row therefore has one possible writer, and every other answer
// writes to rows without a lease.
//
// Example: a step has memory A, row 0 is done there, and row 1 is leased to a
// worker that has stopped.
//   1. Row 1 is to be requested elsewhere. It is leased, so WantMemory puts the
//      step into Decisions::to_move, and row 1 waits.
//   2. The owner takes memory B from the pool and calls MoveToNewBuffer. B
//      becomes the step's memory; A is quarantined: the request's lease keeps
//      it, and it is neither delivered nor reused. No row is leased in B.
//      Row 0 is kMoving, and is returned as a piece from A to B.
//   3. The owner copies row 0 and calls Deliveries::FinishMove: B is the step's
//      current memory, so row 0 is done. (Were the step in memory C by then,
//      the piece would be moved once more, from B to C.)
//   4. Row 1 is requested from another worker, and arrives in B: the step is
//      complete.
//   5. The stopped worker may write row 1 into A at any time, where it is not
//      read. If it says `placed` before step 4, row 1 is copied from A to B
//      instead, as kMoving. When its lease ends, A goes back to the pool.
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
#include "client/fetch/in_flight.h"
#include "client/fetch/worker_stream.h"
#include "leat/v1/worker.pb.h"

namespace leat::client {

class Leases {
 public:
  // All outlive this.
  Leases(const FetcherConfig& config, EndpointTable* endpoints,
         InFlight* in_flight)
      : config_(config), endpoints_(*endpoints), in_flight_(*in_flight) {}

  // Takes the worker's first message; returns whether to open its memory
  // socket. If so, SharingReady or SharingFailed may follow, then
  // SharingClosed, which is certain for a stream that closed with leases.
  absl::StatusOr<bool> Opened(WorkerStream& stream, const v1::Opened& opened,
                              MonotonicTime now);
  void SharingReady(WorkerStream& stream);
  // Nothing more is shared on this stream; leases remain.
  void SharingFailed(WorkerStream& stream, const absl::Status& status);
  // OK may follow another status, if the reply was only late.
  void Shared(WorkerStream& stream, uint64_t memory_id,
              const absl::Status& status);
  void Returned(WorkerStream& stream, uint64_t memory_id);
  // The memory socket has closed: the worker writes nothing any more.
  void SharingClosed(WorkerStream& stream);
  // Moves a step to other memory. Returns the rows to be copied there;
  // Deliveries::FinishMove follows. Does not take `buffer` if the step no
  // longer needs it.
  std::optional<MovePiece> MoveToNewBuffer(const std::shared_ptr<Step>& step,
                                           BatchPool::Buffer* buffer);
  // Returns whether the worker may still write for this consumer.
  static bool HasLeases(const WorkerStream& stream);
  size_t quarantined() const { return quarantined_; }
  // Final: the transport that LEAT_TRANSPORT requires is unavailable.
  const absl::Status& transport_error() const { return transport_error_; }

  // How to request a row from a worker; kWait: not before its stream shares
  // memory.
  enum class Placement : uint8_t { kBytes, kInPlace, kWait };
  Placement PlacementOf(const Step& step, const Row& row, uint16_t worker);
  // A leased row is to be requested elsewhere: its step needs other memory.
  void WantMemory(const std::shared_ptr<Step>& step);
  // Offers the step's memory to every stream that accepts memory.
  void OfferToAll(const Step& step);
  // Returns the part of a step's memory that the worker is to write to: a GPU's
  // if it has that GPU, otherwise this host's. nullptr: none.
  std::shared_ptr<BatchMemory> PartFor(const WorkerStream& stream,
                                       const StepMemory& memory) const;
  // Allows the request's rows to be written to `part` of the step's memory.
  static void Begin(OpenRequest& request, const BatchMemory& part);
  // Ends the lease. The caller guarantees that no row of the request is written
  // any more.
  void EndLease(WorkerStream& stream, OpenRequest& request);
  // Announces that a reference to memory, maybe the last, is about to be
  // dropped.
  void Release(const std::shared_ptr<StepMemory>& memory) {
    if (memory && memory->quarantined)
      in_flight_.decided.released.push_back(memory);
  }
  // The request's rows are no longer outstanding, but may still be written.
  void KeepLease(WorkerStream& stream, uint64_t request_id,
                 OpenRequest request);
  // A withdrawn request has ended, or its rows were answered.
  void RequestEnded(WorkerStream& stream, uint64_t request_id);
  void AnsweredEnding(WorkerStream& stream, const v1::RowsResponse& header);
  // The stream has closed: if it has leases, it is kept until they end.
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
  InFlight& in_flight_;
  // Closed streams with active leases.
  std::vector<std::shared_ptr<WorkerStream>> closed_streams_;
  size_t quarantined_ = 0;  // buffers with active leases
  absl::Status transport_error_;
};

}  // namespace leat::client
