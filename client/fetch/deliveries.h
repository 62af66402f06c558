// SPDX-License-Identifier: Apache-2.0
//
// Deliveries tracks requests and their answers: requests, groups of an answer,
// claims on rows, errors, the end of a stream.
//
// The state of a row (RowState in step.h):
//
//             a group claims it            a piece is being copied
//   kWanted ────────────────────► kClaimed ◄──────────────────────► kCopying
//      ▲ ▲                         │    ▲                               │
//      │ └─────────────────────────┘    └── another group takes it over │
//      │   its group's error, or the        (not while it is copied)    │
//      │   end of its stream                                            │
//      │                                                                │
//      └ the first answer wins:       the last piece has been copied    │
//        all later ones are dropped   ┌─────────────────────────────────┤
//                                     ▼                                 ▼
//                                   kDone ─── MoveToNewBuffer ────► kMoving
//                                     ▲                                 │
//                                     └──── it is in current memory ────┘
//
// A row that is `placed` goes from kWanted to kDone at once, or to kMoving if
// its step has moved to other memory since the request (leases.h). kMoving also
// follows kCopying if the step moved in between. A row that is kDone or kMoving
// is settled: no answer writes it again.
//
// Thread-compatible: the Fetcher's owner locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/fetch/endpoint_table.h"
#include "client/fetch/hedge_budget.h"
#include "client/fetch/in_flight.h"
#include "client/fetch/leases.h"
#include "client/fetch/worker_stream.h"
#include "leat/v1/worker.pb.h"

namespace leat::client {

class Deliveries {
 public:
  // All pointers outlive this.
  Deliveries(const FetcherConfig& config, EndpointTable* endpoints,
             Leases* leases, InFlight* in_flight)
      : config_(config),
        endpoints_(*endpoints),
        leases_(*leases),
        in_flight_(*in_flight) {}

  // The following calls of Ask are for one step.
  void BeginStep() { ++round_; }
  // Adds the row to the message to the worker for this step, or to a new one. A
  // row with absent samples gets a message of its own.
  void Ask(const std::shared_ptr<Step>& step, uint32_t index, uint16_t worker,
           bool in_place, MonotonicTime now);
  // Makes the stream's outstanding rows pending, to be requested from other
  // workers too. If the reason is lateness, only as far as the budget allows.
  void AskElsewhere(WorkerStream& stream, Row::Again why, HedgeBudget* budget);

  // The rows to copy next, without the lock: at most one of the two.
  struct Arrival {
    std::optional<FramePiece> frame;  // then End
    std::optional<MovePiece> move;    // then FinishMove
  };
  // Takes the header of a frame that has arrived on a stream. kInvalidArgument:
  // the worker broke the protocol; end the stream.
  absl::StatusOr<Arrival> Begin(WorkerStream& stream,
                                const v1::RowsResponse& header,
                                size_t data_bytes, MonotonicTime now);
  // Reports that the piece was copied. Returns rows whose step has moved to
  // other memory meanwhile, and that are to be copied there.
  std::optional<MovePiece> End(WorkerStream& stream, const FramePiece& piece,
                               MonotonicTime now);
  // Reports that the rows were copied. Returns false if the step has moved
  // again meanwhile; then `piece` says what to copy next.
  bool FinishMove(MovePiece& piece, MonotonicTime now);
  // Reports the end of the stream. This is the last call for it.
  void Closed(WorkerStream& stream, const absl::Status& status,
              MonotonicTime now);

 private:
  absl::StatusOr<Arrival> BeginData(WorkerStream& stream,
                                    const v1::RowsResponse& header,
                                    size_t data_bytes);
  absl::StatusOr<std::shared_ptr<FrameGroup>> Claim(
      WorkerStream& stream, OpenRequest& request,
      const v1::RowsResponse& header);
  absl::StatusOr<Arrival> Placed(WorkerStream& stream,
                                 const v1::RowsResponse& header,
                                 size_t data_bytes, MonotonicTime now);
  absl::StatusOr<MovePiece> PlacedRows(const OpenRequest& request,
                                       const v1::RowsResponse& header,
                                       size_t data_bytes);
  StreamMessage& MessageFor(const std::shared_ptr<Step>& step, uint32_t index,
                            const std::shared_ptr<WorkerStream>& stream,
                            const BatchMemory* part, MonotonicTime now);
  absl::Status RowError(WorkerStream& stream, const v1::RowsResponse& header,
                        MonotonicTime now);
  void FailRows(WorkerStream& stream, const OpenRequest& request,
                std::span<const uint32_t> failed, const v1::RowError& error,
                MonotonicTime now);
  bool IsAbsent(WorkerStream& stream, Step& step, uint32_t index,
                const v1::RowError& error, MonotonicTime now);
  void FailStep(Step& step, absl::StatusCode code, std::string_view message,
                const WorkerEndpoint& endpoint);
  void CountTrip(WorkerStream& stream, const FrameGroup& group,
                 MonotonicTime now);
  void CountRows(WorkerStream& stream, uint64_t request_id, size_t group_rows,
                 uint64_t rows, const Step& step, MonotonicTime now);
  void Answered(WorkerStream& stream, uint64_t request_id,
                std::span<const uint32_t> indices);
  // Traces a request that is no longer outstanding.
  void TraceRequest(const WorkerStream& stream, uint64_t request_id,
                    const OpenRequest& request, bool failed) const;
  void Abandon(FrameGroup& group);
  // Counts `rows` more rows of the step as done.
  void AddDone(Step& step, uint64_t rows);
  void Withdraw(const Step& step);

  const FetcherConfig& config_;
  EndpointTable& endpoints_;
  Leases& leases_;
  InFlight& in_flight_;
  uint64_t next_request_ = 1;
  uint64_t round_ = 0;
  MonotonicTime now_{};  // the latest time passed to a call
};

}  // namespace leat::client
