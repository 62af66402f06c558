// SPDX-License-Identifier: Apache-2.0
//
// ListBlocks: the blocks of long lists (core/pipeline/long_list.h), which
// clients upload before they create the job whose reader names them.
//
//   client            ListBlocks                      BlockStore
//   FindListBlocks ──► which are there ──────────────► stay for an hour
//   PutListBlock ────► the hash, and the room left ──► durable
//   CreateJob ───────► all there, or kDataLoss ──────► stay while a job names
//                                                      them
//
// The bytes of new blocks in an hour are bounded, so that clients cannot fill
// the disk with blocks that no job names.
//
// Thread-safe. The calls may wait for a disk.
#pragma once

#include <chrono>
#include <cstdint>

#include "absl/status/status.h"
#include "core/mutex.h"
#include "core/pipeline/graph.h"
#include "leat/v1/coordinator.pb.h"
#include "server/coordinator/coordinator.h"

namespace leat::server {

struct ListBlocksConfig {
  uint64_t max_new_bytes = 4ull << 30;  // in `window`
  Duration window = std::chrono::hours(1);
};

class ListBlocks {
 public:
  // `coordinator` outlives it.
  explicit ListBlocks(Coordinator* coordinator, ListBlocksConfig config = {})
      : coordinator_(coordinator), config_(config) {}

  // kInvalidArgument: a hash of another length, or too many.
  absl::Status Find(const v1::FindListBlocksRequest& request, Now now,
                    v1::FindListBlocksResponse* response);
  // kInvalidArgument: the size. kDataLoss: another hash. kResourceExhausted:
  // no room.
  absl::Status Put(const v1::PutListBlockRequest& request, Now now);
  // kDataLoss, with the argument's name: a block of a list is missing.
  absl::Status CheckThere(const Graph& pipeline, Now now);

 private:
  absl::Status Take(uint64_t bytes, Now now);

  Coordinator* const coordinator_;
  const ListBlocksConfig config_;
  Mutex mu_;
  MonotonicTime window_ends_ ABSL_GUARDED_BY(mu_){};
  uint64_t new_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // in this window
};

}  // namespace leat::server
