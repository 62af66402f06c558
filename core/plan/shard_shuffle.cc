// SPDX-License-Identifier: Apache-2.0
//
// The permuted shards, concatenated, are a stream. It is cut into blocks of H =
// window / 2 shards and permuted inside each (first pass); then cut again in
// the middle of each of those blocks, and permuted inside each piece (second
// pass):
//
//   shards      | s0 s1 | s2 s3 | s4 s5 |      window 4, H = 2
//   first pass  |<- A ->|<- B ->|<- C ->|
//   second pass |<->|<----->|<----->|<->|
//
// A piece overlaps two blocks, 2·H shards, and the next piece replaces the
// older block by the next one: a window of `window` shards that slides by H.
// Both passes are bijections that need only the blocks' bounds. A window of 1
// has only the first pass.
#include "core/plan/shard_shuffle.h"

#include <algorithm>
#include <numeric>

namespace leat {
namespace {

enum Salt : uint64_t { kShards = 1, kFirst = 2, kSecond = 3 };

}  // namespace

ShardShuffle::ShardShuffle(const ShardTable& shards, ShardTable::Range range,
                           uint32_t window, uint64_t key)
    : key_(key) {
  const uint32_t first_shard = shards.ShardOf(range.begin);
  const uint32_t num_shards = shards.ShardOf(range.end - 1) - first_shard + 1;
  std::vector<uint64_t> sequence(num_shards);
  Permutation(num_shards, MixKey(key, 0, kShards)).Map(0, sequence);

  samples_.reserve(num_shards);
  starts_.reserve(num_shards + size_t{1});
  starts_.push_back(0);
  for (uint64_t shard : sequence) {
    const auto [begin, end] =
        shards.range(first_shard + static_cast<uint32_t>(shard));
    samples_.push_back(std::max(begin, range.begin));
    starts_.push_back(starts_.back() + std::min(end, range.end) -
                      samples_.back());
  }

  const uint32_t block = std::max(window / 2, uint32_t{1});
  for (uint64_t i = 0; i < num_shards; i += block) first_.push_back(starts_[i]);
  first_.push_back(range.size());
  if (window == 1) return;
  second_.push_back(0);
  for (size_t i = 0; i + 1 < first_.size(); ++i) {
    const uint64_t middle = std::midpoint(first_[i], first_[i + 1]);
    if (middle > second_.back()) second_.push_back(middle);
  }
  second_.push_back(range.size());
}

void ShardShuffle::MoveTo(std::span<const uint64_t> starts, uint64_t salt,
                          uint64_t position, Block* block) const {
  if (position >= block->begin && position < block->end) return;
  const auto after = std::upper_bound(starts.begin(), starts.end(), position);
  block->begin = after[-1];
  block->end = *after;
  // The key contains the begin: no two blocks of a pass begin at the same
  // position.
  block->permutation =
      Permutation(block->end - block->begin, MixKey(key_, block->begin, salt));
}

uint64_t ShardShuffle::SampleAt(uint64_t position) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), position);
  const size_t shard = static_cast<size_t>(after - starts_.begin()) - 1;
  return samples_[shard] + (position - starts_[shard]);
}

void ShardShuffle::MapInPlace(std::span<uint64_t> indices) const {
  Block second, first[2];  // a piece of the second pass overlaps two blocks
  for (uint64_t& index : indices) {
    uint64_t position = index;
    if (!second_.empty()) {
      MoveTo(second_, kSecond, position, &second);
      position = second.begin + second.permutation(position - second.begin);
    }
    const bool in_older = position < first[0].end && position >= first[0].begin;
    Block* const block = &first[in_older ? 0 : 1];
    if (!in_older && (position < block->begin || position >= block->end))
      std::swap(first[0], first[1]);
    MoveTo(first_, kFirst, position, block);
    position = block->begin + block->permutation(position - block->begin);
    index = SampleAt(position);
  }
}

}  // namespace leat
