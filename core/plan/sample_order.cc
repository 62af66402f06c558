// SPDX-License-Identifier: Apache-2.0
#include "core/plan/sample_order.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "core/plan/shard_shuffle.h"
#include "core/random/permutation.h"
#include "core/random/permute_each.h"

namespace leat {
namespace {

// A salt of MixKey. A run's is kOrderSalt + its number, which is < 2^32.
constexpr uint64_t kOrderSalt = 0x6F72646572'000000;  // "order"

constexpr uint32_t kMostOrders = 32;

// Up to so many positions of a permutation are mapped with those of others.
constexpr size_t kFewPositions = 16;

}  // namespace

// Keeps the shard orders that were used last. A plan is asked about one pass
// over a run, and near its end about two; a host's rows lie in few runs.
// Thread-safe.
class SampleOrder::ShardOrders {
 public:
  ShardOrders(const ShardTable& shards, uint32_t window, uint32_t runs)
      : shards_(shards),
        window_(window),
        entries_(std::min(2 * std::min(runs, kMostOrders), kMostOrders)) {}

  std::shared_ptr<const ShardShuffle> Get(uint64_t key,
                                          ShardTable::Range range) {
    {
      MutexLock lock(&mu_);
      for (const Entry& entry : entries_)
        if (entry.order != nullptr && entry.key == key) return entry.order;
    }
    auto order =
        std::make_shared<const ShardShuffle>(shards_, range, window_, key);
    MutexLock lock(&mu_);
    entries_[next_] = {key, order};
    next_ = (next_ + 1) % entries_.size();
    return order;
  }

 private:
  struct Entry {
    uint64_t key = 0;
    // Shared with readers that still use an order that was dropped here.
    std::shared_ptr<const ShardShuffle> order;
  };
  const ShardTable shards_;
  const uint32_t window_;
  Mutex mu_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mu_);
  size_t next_ ABSL_GUARDED_BY(mu_) = 0;
};

SampleOrder::SampleOrder(const Options& options, const ShardTable& shards,
                         uint32_t runs)
    : seed_(options.seed),
      mixed_(MixSeed(options.seed, kOrderSalt)),
      order_(options.order),
      shard_orders_(
          options.order == Order::kShardShuffle
              ? std::make_unique<ShardOrders>(shards, options.window, runs)
              : nullptr) {}

SampleOrder::~SampleOrder() = default;

uint64_t SampleOrder::KeyOf(uint64_t pass, const Run& run) const {
  return run.number == 0 ? MixEpoch(mixed_, pass)
                         : MixKey(seed_, pass, kOrderSalt + run.number);
}

void SampleOrder::Map(uint64_t pass, const Run& run,
                      std::span<uint64_t> positions) const {
  if (run.range.size() == 0) return;
  const uint64_t key = KeyOf(pass, run);
  if (order_ == Order::kShardShuffle) {
    shard_orders_->Get(key, run.range)->MapInPlace(positions);
    return;
  }
  if (order_ == Order::kGlobalShuffle)
    Permutation(run.range.size(), key).MapInPlace(positions);
  for (uint64_t& position : positions) position += run.range.begin;
}

void SampleOrder::MapOrAdd(uint64_t pass, const Run& run,
                           std::span<uint64_t> positions,
                           std::vector<PermutedIndices>* few) const {
  const uint64_t samples = run.range.size();
  if (order_ != Order::kGlobalShuffle || samples == 0 ||
      positions.size() > kFewPositions)
    return Map(pass, run, positions);
  few->push_back({samples, KeyOf(pass, run), positions, run.range.begin});
}

}  // namespace leat
