// SPDX-License-Identifier: Apache-2.0
//
// The global layout is that of one part with all rows and all samples. So a row
// is the `offset`-th of its part's rows, its position in the part's order is
// step × rows of a part + offset, and the order maps that to a sample.
#include "core/plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/mutex.h"
#include "core/permutation.h"
#include "core/shard_shuffle.h"

namespace leat {
namespace {

// Salts of MixKey. A part's is kOrderSalt + part, part < 2^32.
constexpr uint64_t kOrderSalt = 0x6F72646572'000000;       // "order"
constexpr uint64_t kSubstituteSalt = 0x73756273'00000000;  // "subs"
constexpr uint64_t kPartnerSalt = 0x70617274'00000000;     // "part"

// The shard orders that were used last. A plan is asked about one epoch, and
// near its end about two; a host's rows lie in few parts. Thread-safe.
class ShardOrders {
 public:
  ShardOrders(ShardTable shards, uint32_t window)
      : shards_(std::move(shards)), window_(window) {}

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
  std::array<Entry, 32> entries_ ABSL_GUARDED_BY(mu_);
  size_t next_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace

struct Plan::State {
  State(const JobSpec& spec, const ShardTable& shards)
      : seed(spec.seed),
        order(spec.order),
        last_batch(spec.last_batch),
        batch(spec.batch),
        num_samples(shards.num_samples()),
        num_parts(std::max(spec.num_parts, uint32_t{1})),
        part_rows(batch / num_parts) {
    if (order == Order::kShardShuffle)
      shard_orders = std::make_unique<ShardOrders>(shards, spec.shuffle_window);
  }

  ShardTable::Range PartRange(uint32_t part) const {
    const auto start = [&](uint64_t k) {
      return static_cast<uint64_t>(static_cast<unsigned __int128>(num_samples) *
                                   k / num_parts);
    };
    return {start(part), start(part + uint64_t{1})};
  }
  uint64_t StepsPerEpoch() const {
    const uint64_t smallest = num_samples / num_parts;
    if (last_batch == LastBatch::kDrop) return smallest / part_rows;
    const uint64_t largest = smallest + (num_samples % num_parts != 0);
    return largest / part_rows + (largest % part_rows != 0);
  }
  // Samples of a part of `size` samples that are in its rows of `step`, without
  // repetitions.
  uint64_t SamplesIn(uint64_t step, uint64_t size) const {
    const uint64_t begin = std::min(step * part_rows, size);
    return std::min<uint64_t>(size - begin, part_rows);
  }
  // Position in the order of a part, which has `size` samples; `size` itself if
  // the row holds none.
  uint64_t Position(uint64_t step, uint32_t row, uint64_t size) const {
    const uint64_t position = step * part_rows + row % part_rows;
    if (position < size) return position;
    if (last_batch == LastBatch::kPartial) return size;
    return last_batch == LastBatch::kFill ? position % size : size - 1;
  }
  void MapPart(uint64_t epoch, uint32_t part, ShardTable::Range range,
               std::span<uint64_t> positions) const;

  const uint64_t seed;
  const Order order;
  const LastBatch last_batch;
  const uint32_t batch;
  const uint64_t num_samples;
  const uint32_t num_parts;
  const uint32_t part_rows;  // rows of the batch that a part fills
  std::unique_ptr<ShardOrders> shard_orders;  // under kShardShuffle only
};

// Positions in the order of a part become samples.
void Plan::State::MapPart(uint64_t epoch, uint32_t part,
                          ShardTable::Range range,
                          std::span<uint64_t> positions) const {
  const uint64_t key = MixKey(seed, epoch, kOrderSalt + part);
  if (order == Order::kShardShuffle) {
    shard_orders->Get(key, range)->MapInPlace(positions);
    return;
  }
  if (order == Order::kGlobalShuffle)
    Permutation(range.size(), key).MapInPlace(positions);
  for (uint64_t& position : positions) position += range.begin;
}

Plan::Plan(const JobSpec& spec, const ShardTable& shards)
    : state_(std::make_unique<State>(spec, shards)) {}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

uint64_t Plan::num_samples() const { return state_->num_samples; }
uint64_t Plan::steps_per_epoch() const { return state_->StepsPerEpoch(); }
uint32_t Plan::batch() const { return state_->batch; }

uint32_t Plan::rows_in(uint64_t step) const {
  const State& s = *state_;
  if (s.last_batch != LastBatch::kPartial) return s.batch;
  // N mod n parts have one sample more than the others.
  const uint64_t smallest = s.num_samples / s.num_parts;
  const uint64_t larger_parts = s.num_samples % s.num_parts;
  return static_cast<uint32_t>(larger_parts * s.SamplesIn(step, smallest + 1) +
                               (s.num_parts - larger_parts) *
                                   s.SamplesIn(step, smallest));
}

void Plan::Samples(uint64_t epoch, uint64_t step,
                   std::span<const uint32_t> rows,
                   std::span<uint64_t> samples) const {
  const State& s = *state_;
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    const uint32_t part = rows[begin] / s.part_rows;
    const ShardTable::Range range = s.PartRange(part);
    bool all_hold_samples = true;
    for (end = begin; end < rows.size() && rows[end] / s.part_rows == part;
         ++end) {
      samples[end] = s.Position(step, rows[end], range.size());
      if (samples[end] < range.size()) continue;
      all_hold_samples = false;
      samples[end] = 0;  // maps to anything
    }
    if (range.size() > 0)
      s.MapPart(epoch, part, range, samples.subspan(begin, end - begin));
    if (all_hold_samples) continue;
    for (size_t i = begin; i < end; ++i)
      if (s.Position(step, rows[i], range.size()) == range.size())
        samples[i] = kNoSample;
  }
}

uint32_t Plan::PartnerOf(uint64_t epoch, uint64_t step, uint32_t row) const {
  const State& s = *state_;
  const uint64_t rows = rows_in(step);
  if (rows < 2) return row;
  const uint64_t key = MixKey(MixKey(s.seed, epoch, kPartnerSalt), step, 0);
  const auto shift = static_cast<uint64_t>(
      (static_cast<unsigned __int128>(key) * (rows - 1) >> 64) + 1);
  if (rows == s.batch) return static_cast<uint32_t>((row + shift) % rows);
  // Some parts have rows without a sample, at their ends.
  const auto held = [&](uint32_t part) {
    return s.SamplesIn(step, s.PartRange(part).size());
  };
  uint64_t place = row % s.part_rows + shift;  // among those that hold some
  for (uint32_t part = 0; part < row / s.part_rows; ++part) place += held(part);
  place %= rows;
  uint32_t part = 0;
  for (; place >= held(part); ++part) place -= held(part);
  return static_cast<uint32_t>(part * uint64_t{s.part_rows} + place);
}

uint64_t Plan::Substitute(uint64_t epoch, uint64_t sample,
                          uint32_t attempt) const {
  const uint64_t n = state_->num_samples;
  if (n < 2) return sample;
  // The others in an order of this sample's own: no attempt repeats another.
  const Permutation others(
      n - 1, MixKey(MixKey(state_->seed, epoch, kSubstituteSalt), sample, 0));
  return (sample + 1 + others(attempt % (n - 1))) % n;
}

}  // namespace leat
