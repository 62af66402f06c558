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

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/plan/job.h"
#include "core/plan/shard_table.h"

namespace leat {

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

  // Positions in a pass over a run, and the order that maps them.
  struct Part {
    const SampleOrder* order = nullptr;
    uint64_t pass = 0;
    Run run;
    std::span<uint64_t> positions;
  };
  // Does what Map does for each part, faster if many have few positions.
  // REQUIRES: as Map; parts.size() ≤ kMostParts.
  static void MapEach(std::span<const Part> parts);
  static constexpr size_t kMostParts = 256;

 private:
  class ShardOrders;

  uint64_t KeyOf(uint64_t pass, const Run& run) const;

  const uint64_t seed_;
  const Order order_;
  const std::unique_ptr<ShardOrders> shard_orders_;  // under kShardShuffle only
};

}  // namespace leat
