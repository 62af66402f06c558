// SPDX-License-Identifier: Apache-2.0
//
// The calls that move blocks of indexes: up from the worker that lists a
// dataset, down to the workers whose rows need them.
//
// A call holds one block (up) or one chunk (down), and the number of concurrent
// calls is bounded by slots, so the coordinator's memory does not grow with the
// number of workers. A caller that gets no slot is told to retry.
#pragma once

#include <atomic>

#include "absl/status/status.h"
#include "core/clock.h"
#include "core/hash.h"
#include "grpcpp/support/server_callback.h"
#include "leat/v1/coordinator.pb.h"
#include "server/coordinator/coordinator.h"

namespace leat::server {

inline constexpr int kMaxBlockReads = 64;
inline constexpr int kMaxBlockWrites = 16;

// TransferSlots bounds concurrent calls. Thread-safe.
class TransferSlots {
 public:
  explicit TransferSlots(int slots) : free_(slots) {}
  bool Take() {
    if (free_.fetch_sub(1) > 0) return true;
    free_.fetch_add(1);
    return false;
  }
  void Give() { free_.fetch_add(1); }

 private:
  std::atomic<int> free_;
};

// Returns the error for a caller that gets no slot: kUnavailable.
absl::Status TransfersAreBusy();

// `slots`: without a free one, no index is read.
absl::Status AnswerIndexBlocks(Coordinator* coordinator, Now now,
                               const v1::GetIndexBlocksRequest& request,
                               TransferSlots* slots,
                               v1::GetIndexBlocksResponse* response);
absl::Status AnswerFindBlocks(Coordinator* coordinator, Now now,
                              const v1::FindIndexBlocksRequest& request,
                              v1::FindIndexBlocksResponse* response);

// Both delete themselves when the call is over. Their arguments outlive them.
// `unusable`: why the caller could not use the block as sent before; may be
// empty.
grpc::ServerWriteReactor<v1::GetIndexBlockResponse>* StartGetIndexBlock(
    Coordinator* coordinator, const Clock* clock, const Digest& name,
    const std::string& unusable, TransferSlots* slots);
grpc::ServerReadReactor<v1::PutIndexBlockRequest>* StartPutIndexBlock(
    Coordinator* coordinator, const Clock* clock, TransferSlots* slots);

}  // namespace leat::server
