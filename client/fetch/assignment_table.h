// SPDX-License-Identifier: Apache-2.0
//
// AssignmentTable: which workers own which shards, as sent by the coordinator.
// It is only a hint: any table gives the same batches.
//
// Immutable; shared between threads by shared_ptr.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
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

  // Returns one table of the shards of all tables, one after the other. Its
  // version grows with each of theirs. REQUIRES: at least one table.
  static std::shared_ptr<const AssignmentTable> Joined(
      std::span<const std::shared_ptr<const AssignmentTable>> tables);

  // Returns whether this table replaces `other` (nullptr: none). A table
  // without workers never replaces one with workers: a coordinator that sees no
  // worker may have just started, or be cut off.
  bool Replaces(const AssignmentTable* other) const;

  const std::vector<Worker>& workers() const { return workers_; }
  // Indices into workers(), best first. REQUIRES: shard < number of shards.
  std::span<const uint16_t> owners(uint32_t shard) const {
    const Part& part = PartOf(shard);
    return {owners_.data() + part.first_owner +
                size_t{shard - part.first_shard} * part.per_shard,
            part.per_shard};
  }
  uint64_t instance() const { return instance_; }
  uint64_t version() const { return version_; }

 private:
  // Shards with equally many owners.
  struct Part {
    uint32_t first_shard = 0, num_shards = 0;
    uint32_t per_shard = 0;
    size_t first_owner = 0;  // in owners_
  };

  AssignmentTable() = default;
  const Part& PartOf(uint32_t shard) const {
    if (parts_.size() == 1) return parts_[0];
    return *std::prev(
        std::ranges::upper_bound(parts_, shard, {}, &Part::first_shard));
  }

  uint64_t instance_ = 0;
  uint64_t version_ = 0;
  std::vector<Part> parts_;
  std::vector<Worker> workers_;
  std::vector<uint16_t> owners_;
};

}  // namespace leat::client
