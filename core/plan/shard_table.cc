// SPDX-License-Identifier: Apache-2.0
#include "core/plan/shard_table.h"

#include <algorithm>

#include "core/status.h"

namespace leat {
namespace {

constexpr uint64_t kUsualShards = 512;
constexpr uint64_t kLargestUsualShard = 1024;

uint64_t CeilDiv(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

}  // namespace

absl::StatusOr<ShardTable> ShardTable::Uniform(uint64_t num_samples,
                                               uint64_t shard_size) {
  if (shard_size == 0) return InvalidArgument("shard size 0: want at least 1");
  if (num_samples > kMaxSamples)
    return InvalidArgument("{} samples: want at most {}", num_samples,
                           kMaxSamples);
  const uint64_t num_shards = CeilDiv(num_samples, shard_size);
  if (num_shards > kMaxShards)
    return InvalidArgument(
        "{} samples in shards of {} are {} shards: want at most {}, so a shard "
        "size of at least {}",
        num_samples, shard_size, num_shards, kMaxShards,
        CeilDiv(num_samples, kMaxShards));
  ShardTable table;
  table.num_samples_ = num_samples;
  table.num_shards_ = static_cast<uint32_t>(num_shards);
  table.shard_size_ = shard_size;
  return table;
}

absl::StatusOr<ShardTable> ShardTable::FromSizes(
    std::span<const uint64_t> sizes) {
  if (sizes.empty()) return ShardTable();
  if (sizes.size() > kMaxShards)
    return InvalidArgument("{} shards: want at most {}", sizes.size(),
                           kMaxShards);
  ShardTable table;
  table.starts_.reserve(sizes.size() + 1);
  table.starts_.push_back(0);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0)
      return InvalidArgument("shard {} has 0 samples: want at least 1", i);
    if (sizes[i] > kMaxSamples - table.starts_.back())
      return InvalidArgument(
          "shard {} with {} samples takes the sum over {}: want at most that",
          i, sizes[i], kMaxSamples);
    table.starts_.push_back(table.starts_.back() + sizes[i]);
  }
  table.num_samples_ = table.starts_.back();
  table.num_shards_ = static_cast<uint32_t>(sizes.size());
  return table;
}

uint64_t ShardTable::DefaultShardSize(uint64_t num_samples) {
  const uint64_t usual = std::clamp<uint64_t>(
      CeilDiv(num_samples, kUsualShards), 1, kLargestUsualShard);
  return std::max(usual, CeilDiv(num_samples, kMaxShards));
}

uint32_t ShardTable::ShardOf(uint64_t sample) const {
  if (uniform()) return static_cast<uint32_t>(sample / shard_size_);
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), sample);
  return static_cast<uint32_t>(after - starts_.begin() - 1);
}

ShardTable::Range ShardTable::range(uint32_t shard) const {
  if (!uniform()) return {starts_[shard], starts_[shard + 1]};
  const uint64_t begin = shard * shard_size_;
  return {begin, std::min(begin + shard_size_, num_samples_)};
}

}  // namespace leat
