// SPDX-License-Identifier: Apache-2.0
//
// Deliveries: what is asked of whom, and what becomes of the answers. Asks,
// groups of an answer, claims on rows, errors, the end of a stream.
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
//                                   kDone ────── Evacuate ────────► kMoving
//                                     ▲                                 │
//                                     └──── it is in current memory ────┘
//
// A row that is `placed` goes from kWanted to kDone at once, or to kMoving if
// its step has got other memory since it was asked (leases.h). kMoving also
// follows kCopying if the step got other memory in between. A row that is kDone
// or kMoving is settled: no answer writes it again.
//
// Thread-compatible: the Fetcher's owner locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/lane.h"
#include "client/leases.h"
#include "client/peer_table.h"
#include "client/window.h"
#include "leat/v1/worker.pb.h"

namespace leat::client {

class Deliveries {
 public:
  // All outlive this.
  Deliveries(const FetcherConfig& config, PeerTable* peers, Leases* leases,
             Window* window)
      : config_(config), peers_(*peers), leases_(*leases), window_(*window) {}

  // Adds the row to a message of *messages from `first` on that goes to the
  // worker for this step, or to a new one.
  void Ask(const std::shared_ptr<Step>& step, uint32_t index, uint16_t worker,
           bool in_place, MonotonicTime now, size_t first,
           std::vector<LaneMessage>* messages);
  // What has been withdrawn since the last call.
  std::vector<LaneMessage> TakeWithdrawals() {
    return std::exchange(withdrawals_, {});
  }
  // What the lane owes is asked of others too.
  void AskElsewhere(Lane& lane);

  // As of Fetcher.
  absl::StatusOr<std::optional<Piece>> Begin(Lane& lane,
                                             const v1::RowsResponse& header,
                                             size_t data_bytes,
                                             MonotonicTime now);
  std::optional<Piece> End(Lane& lane, const Piece& piece, MonotonicTime now);
  std::optional<Piece> FinishMove(const Piece& piece);
  void Closed(Lane& lane, const absl::Status& status, MonotonicTime now);

 private:
  absl::StatusOr<std::optional<Piece>> BeginData(Lane& lane,
                                                 const v1::RowsResponse& header,
                                                 size_t data_bytes);
  absl::StatusOr<std::shared_ptr<Group>> Claim(Lane& lane, OpenAsk& ask,
                                               const v1::RowsResponse& header);
  absl::StatusOr<std::optional<Piece>> Placed(Lane& lane,
                                              const v1::RowsResponse& header,
                                              size_t data_bytes,
                                              MonotonicTime now);
  absl::StatusOr<std::shared_ptr<Group>> PlacedGroup(
      const OpenAsk& ask, const v1::RowsResponse& header, size_t data_bytes);
  absl::Status RowError(Lane& lane, const v1::RowsResponse& header,
                        MonotonicTime now);
  void CountRows(Lane& lane, const Group& group, uint64_t rows,
                 MonotonicTime now);
  void Answered(Lane& lane, uint64_t ask_id, std::span<const uint32_t> indices);
  void Abandon(Group& group);
  void Completed(const Step* step);

  const FetcherConfig& config_;
  PeerTable& peers_;
  Leases& leases_;
  Window& window_;
  std::vector<LaneMessage> withdrawals_;
  uint64_t next_ask_ = 1;
};

}  // namespace leat::client
