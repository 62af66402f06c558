// SPDX-License-Identifier: Apache-2.0
//
// The global layout is that of one part with all rows and all samples. The rows
// that walk one part at a time are a block. So a row is the `offset`-th of its
// block's rows, it comes step × rows of a block + offset samples into what the
// block walks, and the part's order maps that to a sample.
#include "core/plan/plan.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <variant>

#include "core/mutex.h"
#include "core/plan/shard_shuffle.h"
#include "core/random/permutation.h"
#include "core/status.h"

namespace leat {
namespace {

// Salts of MixKey. A part's is kOrderSalt + part, part < 2^32.
constexpr uint64_t kOrderSalt = 0x6F72646572'000000;       // "order"
constexpr uint64_t kSubstituteSalt = 0x73756273'00000000;  // "subs"
constexpr uint64_t kPartnerSalt = 0x70617274'00000000;     // "part"

using Wide = unsigned __int128;

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
  // One pass over a part, by the rows of a block.
  struct Pass {
    uint64_t number = 0;
    uint32_t part = 0;
    ShardTable::Range range;
    uint64_t begin = 0;  // samples that the block walks before it
  };

  State(const JobSpec& spec, const ShardTable& shards)
      : seed(spec.seed),
        order(spec.order),
        last_batch(spec.last_batch),
        batch(spec.batch),
        num_samples(shards.num_samples()),
        num_parts(std::max(spec.num_parts, uint32_t{1})),
        rotate(spec.rotate_parts),
        mix(spec.mix_parts),
        block_rows(batch / num_parts) {
    if (order == Order::kShardShuffle)
      shard_orders = std::make_unique<ShardOrders>(shards, spec.shuffle_window);
  }

  ShardTable::Range PartRange(uint32_t part) const {
    const auto start = [&](uint64_t k) {
      return static_cast<uint64_t>(Wide{num_samples} * k / num_parts);
    };
    return {start(part), start(part + uint64_t{1})};
  }
  uint64_t StepsPerEpoch() const {
    if (last_batch == LastBatch::kStream) return kStreamSteps;
    const uint64_t smallest = num_samples / num_parts;
    if (last_batch == LastBatch::kDrop) return smallest / block_rows;
    const uint64_t largest = smallest + (num_samples % num_parts != 0);
    return largest / block_rows + (largest % block_rows != 0);
  }
  uint32_t PartOf(uint64_t epoch, uint32_t block) const {
    return rotate
               ? static_cast<uint32_t>((block + epoch % num_parts) % num_parts)
               : block;
  }
  // Samples of a part of `size` samples that are in its rows of `step`, without
  // repetitions.
  uint64_t SamplesIn(uint64_t step, uint64_t size) const {
    const uint64_t begin = std::min(step * block_rows, size);
    return std::min<uint64_t>(size - begin, block_rows);
  }
  // Samples that the row's block walks before it.
  uint64_t WalkedAt(uint64_t step, uint32_t row) const {
    return step * block_rows + row % block_rows;
  }
  Pass PassAt(uint64_t epoch, uint32_t block, uint64_t walked) const {
    if (last_batch == LastBatch::kStream) return PassInStream(block, walked);
    const uint32_t part = PartOf(epoch, block);
    return {.number = epoch, .part = part, .range = PartRange(part)};
  }
  Pass PassInStream(uint32_t block, uint64_t walked) const;
  // Position in the order of a part of `size` samples; `size` itself if there
  // is no sample.
  uint64_t PositionIn(uint64_t size, uint64_t walked) const {
    if (walked < size) return walked;
    if (last_batch == LastBatch::kPartial) return size;
    return last_batch == LastBatch::kFill ? walked % size : size - 1;
  }
  void MapPass(const Pass& pass, std::span<uint64_t> positions) const;

  const uint64_t seed;
  const Order order;
  const LastBatch last_batch;
  const uint32_t batch;
  const uint64_t num_samples;
  const uint32_t num_parts;
  const bool rotate;
  const bool mix;
  const uint32_t block_rows;
  std::unique_ptr<ShardOrders> shard_orders;  // under kShardShuffle only
};

// Parts that rotate are walked as they lie: from the start of the block's own
// to the end of the dataset, and on from its beginning.
//
// For example 7 samples in 3 parts, which are [0, 2), [2, 4) and [4, 7). Block 1
// begins at sample 2:
//
//   walked       0  1 | 2  3  4 | 5  6 | 7  8 | 9 …
//   at           2  3 | 4  5  6 | 0  1 | 2  3 | 4 …
//   part         1    | 2       | 0    | 1    | 2
//   parts before 0    | 1       | 2    | 0    | 1
//   number       0    | 1       | 2    | 3    | 4
//   begin        0    | 2       | 5    | 7    | 9
//
// `begin` is how much the block had walked at the start of the pass. Sample 5 is
// in part ⌊(5·3 + 2) / 7⌋ = 2.
Plan::State::Pass Plan::State::PassInStream(uint32_t block,
                                            uint64_t walked) const {
  const ShardTable::Range own = PartRange(block);
  if (!rotate) {
    const uint64_t number = walked / own.size();
    return {number, block, own, number * own.size()};
  }
  const uint64_t at = (own.begin + walked % num_samples) % num_samples;
  // The last part that begins at or before it: ⌊N·part/n⌋ ≤ at.
  const auto part = static_cast<uint32_t>(
      (Wide{at} * num_parts + num_parts - 1) / num_samples);
  const uint32_t parts_before = (part + num_parts - block) % num_parts;
  const ShardTable::Range range = PartRange(part);
  return {.number = walked / num_samples * num_parts + parts_before,
          .part = part,
          .range = range,
          .begin = walked - (at - range.begin)};
}

// Positions in the order of a pass become samples.
void Plan::State::MapPass(const Pass& pass,
                          std::span<uint64_t> positions) const {
  if (pass.range.size() == 0) return;
  // What is put in order: the part's samples, or all, of which it takes some.
  const ShardTable::Range ordered =
      mix ? ShardTable::Range{0, num_samples} : pass.range;
  if (mix)
    for (uint64_t& position : positions) position += pass.range.begin;
  const uint64_t key =
      MixKey(seed, pass.number, kOrderSalt + (mix ? 0 : pass.part));
  if (order == Order::kShardShuffle) {
    shard_orders->Get(key, ordered)->MapInPlace(positions);
    return;
  }
  if (order == Order::kGlobalShuffle)
    Permutation(ordered.size(), key).MapInPlace(positions);
  for (uint64_t& position : positions) position += ordered.begin;
}

Plan::Plan(const JobSpec& spec, const ShardTable& shards)
    : state_(std::make_unique<State>(spec, shards)) {}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

uint64_t Plan::num_samples() const { return state_->num_samples; }
uint64_t Plan::steps_per_epoch() const { return state_->StepsPerEpoch(); }
absl::Status Plan::CheckEpoch(uint64_t epoch) const {
  if (state_->last_batch != LastBatch::kStream || epoch == 0)
    return absl::OkStatus();
  return InvalidArgument(
      "epoch {}: a stream (last_batch \"stream\") has one epoch, whose steps "
      "run on without an end: want epoch 0 and a step",
      epoch);
}

uint32_t Plan::batch() const { return state_->batch; }

uint32_t Plan::rows_in(uint64_t step) const {
  const State& s = *state_;
  if (s.last_batch != LastBatch::kPartial && s.last_batch != LastBatch::kMask)
    return s.batch;
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
    const uint32_t block = rows[begin] / s.block_rows;
    const State::Pass pass =
        s.PassAt(epoch, block, s.WalkedAt(step, rows[begin]));
    const uint64_t size = pass.range.size();
    const auto position = [&](uint32_t row) {
      return s.PositionIn(size, s.WalkedAt(step, row) - pass.begin);
    };
    bool all_hold_samples = true;
    for (end = begin; end < rows.size(); ++end) {
      if (rows[end] / s.block_rows != block) break;
      if (s.last_batch == LastBatch::kStream &&
          s.WalkedAt(step, rows[end]) - pass.begin >= size)
        break;  // of another pass
      samples[end] = position(rows[end]);
      if (samples[end] < size) continue;
      all_hold_samples = false;
      samples[end] = 0;  // maps to anything
    }
    s.MapPass(pass, samples.subspan(begin, end - begin));
    if (all_hold_samples) continue;
    for (size_t i = begin; i < end; ++i)
      if (position(rows[i]) == size) samples[i] = kNoSample;
  }
}

bool Plan::IsPadding(uint64_t epoch, uint64_t step, uint32_t row) const {
  const State& s = *state_;
  if (s.last_batch != LastBatch::kMask) return false;
  const uint64_t walked = s.WalkedAt(step, row);
  return walked >= s.PassAt(epoch, row / s.block_rows, walked).range.size();
}

uint64_t Plan::PassOf(uint64_t epoch, uint64_t step, uint32_t row) const {
  const State& s = *state_;
  return s.PassAt(epoch, row / s.block_rows, s.WalkedAt(step, row)).number;
}

uint32_t Plan::PartnerOf(uint64_t epoch, uint64_t step, uint32_t row) const {
  const State& s = *state_;
  const uint64_t rows = rows_in(step);
  if (rows < 2) return row;
  const uint64_t key = MixKey(MixKey(s.seed, epoch, kPartnerSalt), step, 0);
  const auto shift = static_cast<uint64_t>((Wide{key} * (rows - 1) >> 64) + 1);
  if (rows == s.batch) return static_cast<uint32_t>((row + shift) % rows);
  // Some blocks have rows without a sample, at their ends.
  const auto held = [&](uint32_t block) {
    return s.SamplesIn(step, s.PartRange(s.PartOf(epoch, block)).size());
  };
  uint64_t place = row % s.block_rows + shift;  // among those that hold some
  for (uint32_t block = 0; block < row / s.block_rows; ++block)
    place += held(block);
  place %= rows;
  uint32_t block = 0;
  for (; place >= held(block); ++block) place -= held(block);
  return static_cast<uint32_t>(block * uint64_t{s.block_rows} + place);
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

bool DrawsForSteps(const Graph& pipeline) {
  return std::ranges::any_of(pipeline.nodes, [](const Node& node) {
    const auto per = node.args.find("per");
    if (per == node.args.end()) return false;
    const auto* text = std::get_if<std::string>(&per->second);
    return text != nullptr && *text == "batch";
  });
}

}  // namespace leat
