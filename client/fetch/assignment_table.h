// SPDX-License-Identifier: Apache-2.0
//
// AssignmentTable: which workers own which shards, as sent by the coordinator.
// It is only a hint: any table gives the same batches.
//
// Immutable; shared between threads by shared_ptr.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "leat/v1/types.pb.h"

namespace leat::client {

class AssignmentTable {
 public:
  struct Worker {
    std::string name;
    std::string address;
    std::string public_key{};  // empty: it cannot prove its identity
                               // (rpc/access/worker_key.h)
  };

  // kInvalidArgument: of another dataset, or with inconsistent sizes.
  static absl::StatusOr<std::shared_ptr<const AssignmentTable>> FromProto(
      const v1::Assignment& assignment, std::string_view dataset_id,
      uint32_t num_shards);

  // Returns whether this table replaces `other` (nullptr: none). A table
  // without workers never replaces one with workers: a coordinator that sees no
  // worker may have just started, or be cut off.
  bool Replaces(const AssignmentTable* other) const;

  const std::vector<Worker>& workers() const { return workers_; }
  // Indices into workers(), best first. REQUIRES: shard < number of shards.
  std::span<const uint16_t> owners(uint32_t shard) const {
    return {owners_.data() + size_t{shard} * per_shard_, per_shard_};
  }
  uint64_t instance() const { return instance_; }
  uint64_t version() const { return version_; }

 private:
  AssignmentTable() = default;
  uint64_t instance_ = 0;
  uint64_t version_ = 0;
  uint32_t per_shard_ = 0;
  std::vector<Worker> workers_;
  std::vector<uint16_t> owners_;
};

}  // namespace leat::client
