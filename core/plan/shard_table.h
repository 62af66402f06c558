// SPDX-License-Identifier: Apache-2.0
//
// ShardTable has the shards of a dataset, contiguous runs of samples that cover
// [0, num_samples).
//
// It is either uniform (each shard has `shard_size` samples, the last one
// possibly fewer; O(1) memory) or has given starts. Immutable after
// construction; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace leat {

inline constexpr uint32_t kMaxShards = 65536;               // of one dataset
inline constexpr uint64_t kMaxSamples = uint64_t{1} << 48;  // the same

class ShardTable {
 public:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t size() const { return end - begin; }
    friend bool operator==(const Range&, const Range&) = default;
  };

  ShardTable() = default;  // no samples, no shards
  // kInvalidArgument: shard_size 0, or more than kMaxShards shards.
  static absl::StatusOr<ShardTable> Uniform(uint64_t num_samples,
                                            uint64_t shard_size);
  // `sizes`: number of samples of each shard, > 0. kInvalidArgument: an empty
  // shard, too many, or a sum over 2^48.
  static absl::StatusOr<ShardTable> FromSizes(std::span<const uint64_t> sizes);
  // Returns the shard size for a dataset of small files: about 512 shards, of 1
  // to 1,024 samples each, never more than kMaxShards shards.
  static uint64_t DefaultShardSize(uint64_t num_samples);

  uint64_t num_samples() const { return num_samples_; }
  uint32_t num_shards() const { return num_shards_; }
  bool uniform() const { return starts_.empty(); }
  uint64_t shard_size() const { return shard_size_; }  // REQUIRES: uniform()
  // REQUIRES: sample < num_samples().
  uint32_t ShardOf(uint64_t sample) const;
  // REQUIRES: shard < num_shards().
  Range range(uint32_t shard) const;

 private:
  uint64_t num_samples_ = 0;
  uint32_t num_shards_ = 0;
  uint64_t shard_size_ = 0;
  std::vector<uint64_t> starts_;  // num_shards + 1 entries; empty if uniform
};

}  // namespace leat
