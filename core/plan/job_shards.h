// SPDX-License-Identifier: Apache-2.0
//
// JobShards has the shards of a job, which numbers the samples and the shards
// of one dataset after those of another. Immutable; thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/plan/shard_table.h"

namespace leat {

class JobShards {
 public:
  // The shards of a job of one dataset.
  JobShards(ShardTable shards)  // NOLINT(google-explicit-constructor)
      : JobShards(std::vector<ShardTable>{std::move(shards)}) {}
  // `tables`: of each dataset, in their order.
  explicit JobShards(std::vector<ShardTable> tables) {
    for (ShardTable& table : tables) {
      const Part next{num_samples_, num_shards_, std::move(table)};
      num_samples_ += next.table.num_samples();
      num_shards_ += next.table.num_shards();
      parts_.push_back(next);
    }
  }

  uint64_t num_samples() const { return num_samples_; }
  uint32_t num_shards() const { return num_shards_; }
  // REQUIRES: sample < num_samples(). O(log datasets).
  uint32_t ShardOf(uint64_t sample) const {
    const auto after =
        std::ranges::upper_bound(parts_, sample, {}, &Part::first_sample);
    const Part& part = *std::prev(after);
    return part.first_shard + part.table.ShardOf(sample - part.first_sample);
  }

 private:
  struct Part {
    uint64_t first_sample = 0;
    uint32_t first_shard = 0;
    ShardTable table;
  };

  uint64_t num_samples_ = 0;
  uint32_t num_shards_ = 0;
  std::vector<Part> parts_;
};

}  // namespace leat
