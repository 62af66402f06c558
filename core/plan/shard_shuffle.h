// SPDX-License-Identifier: Apache-2.0
//
// ShardShuffle is an order of one range of samples that reads only few shards
// at a time.
//
// The shards (cut at the range's begin and end) are permuted, and the samples
// are then permuted inside a window that slides over them: at any position of
// the order, the sample is from one of at most `window` consecutive shards of
// the permuted sequence, and this window only moves forwards. Immutable;
// thread-safe; O(shards) memory; any position in O(log shards).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/shard_table.h"
#include "core/random/permutation.h"

namespace leat {

class ShardShuffle {
 public:
  // REQUIRES: range within the table and not empty, window ≥ 1.
  ShardShuffle(const ShardTable& shards, ShardTable::Range range,
               uint32_t window, uint64_t key);

  // Replaces each index by the sample at that position. Fastest if neighbouring
  // indices are close. REQUIRES: each < range.size().
  void MapInPlace(std::span<uint64_t> indices) const;

 private:
  // Positions [begin, end) of a stream of samples, and their permutation.
  struct Block {
    uint64_t begin = 0, end = 0;
    Permutation permutation;
  };
  // Makes `block` the block of `starts` with `position`, unless it is already.
  void MoveTo(std::span<const uint64_t> starts, uint64_t salt,
              uint64_t position, Block* block) const;
  uint64_t SampleAt(uint64_t position) const;

  const uint64_t key_;
  // Entry i is for the i-th shard of the permuted sequence: its first sample in
  // the range, and its first position; one more position at the end.
  std::vector<uint64_t> samples_;
  std::vector<uint64_t> starts_;
  // Positions at which the blocks of each pass begin, and the end.
  std::vector<uint64_t> first_, second_;
};

}  // namespace leat
