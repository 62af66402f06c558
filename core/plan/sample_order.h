// SPDX-License-Identifier: Apache-2.0
//
// SampleOrder maps positions in a pass to samples.
//
// A run is what one order covers: a whole dataset, or one part of it. Each pass
// over a run is a bijection from the positions [0, run size) to the run's
// samples: sequential, a keyed Feistel permutation (core/random/permutation.h),
// or shards permuted and then samples permuted inside a sliding window of
// shards (shard_shuffle.h). The order depends on the seed, the pass and the
// run's number, and on nothing else.
//
// Immutable, except for a cache of shard orders; thread-safe. O(1) memory, and
// under Order::kShardShuffle O(shards) for each of the few orders kept.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/plan/job.h"
#include "core/plan/shard_table.h"

namespace leat {

struct PermutedIndices;

class SampleOrder {
 public:
  struct Run {
    ShardTable::Range range;  // samples of the dataset
    uint32_t number = 0;      // of the part; 0: the whole dataset
  };

  struct Options {
    uint64_t seed = 0;
    Order order = Order::kGlobalShuffle;
    uint32_t window = 16;  // of Order::kShardShuffle, in shards
  };

  // `runs`: how many runs are walked at a time. REQUIRES: `runs` ≥ 1.
  SampleOrder(const Options& options, const ShardTable& shards, uint32_t runs);
  ~SampleOrder();

  // Replaces each position in pass `pass` over `run` by its sample. Fastest if
  // neighbours are near each other. REQUIRES: each position < run.range.size().
  void Map(uint64_t pass, const Run& run, std::span<uint64_t> positions) const;

  // Does the same, or adds the positions to `few` if they are few, so that
  // PermuteEach(few) does it: faster if many orders have few positions.
  // REQUIRES: as Map; they stay where they are until then.
  void MapOrAdd(uint64_t pass, const Run& run, std::span<uint64_t> positions,
                std::vector<PermutedIndices>* few) const;

 private:
  class ShardOrders;

  uint64_t KeyOf(uint64_t pass, const Run& run) const;

  const uint64_t seed_;
  const uint64_t mixed_;  // the part of the keys of run 0 that no pass changes
  const Order order_;
  const std::unique_ptr<ShardOrders> shard_orders_;  // under kShardShuffle only
};

}  // namespace leat
