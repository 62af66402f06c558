// SPDX-License-Identifier: Apache-2.0
#include "core/plan/pass_layout.h"

#include <algorithm>

namespace leat {
namespace {

using Wide = unsigned __int128;

}  // namespace

PassLayout::PassLayout(const JobSpec& spec, uint64_t num_samples)
    : last_batch_(spec.last_batch),
      batch_(spec.batch),
      num_samples_(num_samples),
      num_parts_(std::max(spec.num_parts, uint32_t{1})),
      rotate_(spec.rotate_parts),
      mix_(spec.mix_parts),
      block_rows_(batch_ / num_parts_) {}

uint64_t PassLayout::steps_per_epoch() const {
  if (last_batch_ == LastBatch::kStream) return kStreamSteps;
  const uint64_t smallest = num_samples_ / num_parts_;
  if (last_batch_ == LastBatch::kDrop) return smallest / block_rows_;
  const uint64_t largest = smallest + (num_samples_ % num_parts_ != 0);
  return largest / block_rows_ + (largest % block_rows_ != 0);
}

uint32_t PassLayout::rows_in(uint64_t step) const {
  if (last_batch_ != LastBatch::kPartial && last_batch_ != LastBatch::kMask)
    return batch_;
  // N mod n parts have one sample more than the others.
  const uint64_t smallest = num_samples_ / num_parts_;
  const uint64_t larger_parts = num_samples_ % num_parts_;
  return static_cast<uint32_t>(larger_parts * SamplesIn(step, smallest + 1) +
                               (num_parts_ - larger_parts) *
                                   SamplesIn(step, smallest));
}

uint64_t PassLayout::rows_in(uint64_t epoch, uint64_t step,
                             uint32_t block) const {
  return SamplesIn(step, PartRange(PartOf(epoch, block)).size());
}

Stretch PassLayout::Locate(uint64_t epoch, uint64_t step,
                           std::span<const uint32_t> rows,
                           std::span<uint64_t> positions) const {
  const uint32_t block = rows.front() / block_rows_;
  const Pass pass = PassAt(epoch, block, WalkedAt(step, rows.front()));
  const uint64_t size = pass.range.size();
  Stretch stretch = {.pass = pass.number, .run = {pass.range, pass.part}};
  if (mix_) stretch.run = {{0, num_samples_}, 0};
  const uint64_t first = mix_ ? pass.range.begin : 0;
  for (; stretch.rows < rows.size(); ++stretch.rows) {
    const uint32_t row = rows[stretch.rows];
    if (row / block_rows_ != block) break;
    const uint64_t walked = WalkedAt(step, row) - pass.begin;
    if (last_batch_ == LastBatch::kStream && walked >= size)
      break;  // the row walks another pass
    const uint64_t position = PositionIn(size, walked);
    stretch.whole &= position != kNoPosition;
    positions[stretch.rows] =
        position == kNoPosition ? kNoPosition : first + position;
  }
  return stretch;
}

uint64_t PassLayout::PassOf(uint64_t epoch, uint64_t step, uint32_t row) const {
  return PassAt(epoch, row / block_rows_, WalkedAt(step, row)).number;
}

bool PassLayout::IsPadding(uint64_t epoch, uint64_t step, uint32_t row) const {
  if (last_batch_ != LastBatch::kMask) return false;
  const uint64_t walked = WalkedAt(step, row);
  return walked >= PassAt(epoch, row / block_rows_, walked).range.size();
}

Spot PassLayout::SpotOf(uint64_t epoch, uint64_t step, uint32_t row) const {
  Spot spot;
  const Stretch stretch =
      Locate(epoch, step, std::span(&row, 1), std::span(&spot.position, 1));
  spot.pass = stretch.pass;
  spot.run = stretch.run;
  return spot;
}

void PassLayout::Cut(uint64_t epoch, uint64_t step,
                     std::span<const uint32_t> rows, Stretches* out) const {
  out->list.clear();
  out->positions.resize(rows.size());
  out->slots.clear();
  for (size_t begin = 0; begin < rows.size();) {
    out->list.push_back(Locate(epoch, step, rows.subspan(begin),
                               std::span(out->positions).subspan(begin)));
    begin += out->list.back().rows;
  }
}

ShardTable::Range PassLayout::PartRange(uint32_t part) const {
  const auto start = [&](uint64_t k) {
    return static_cast<uint64_t>(Wide{num_samples_} * k / num_parts_);
  };
  return {start(part), start(part + uint64_t{1})};
}

uint32_t PassLayout::PartOf(uint64_t epoch, uint32_t block) const {
  if (!rotate_) return block;
  return static_cast<uint32_t>((block + epoch % num_parts_) % num_parts_);
}

uint64_t PassLayout::SamplesIn(uint64_t step, uint64_t size) const {
  const uint64_t begin = std::min(step * block_rows_, size);
  return std::min<uint64_t>(size - begin, block_rows_);
}

uint64_t PassLayout::WalkedAt(uint64_t step, uint32_t row) const {
  return step * block_rows_ + row % block_rows_;
}

PassLayout::Pass PassLayout::PassAt(uint64_t epoch, uint32_t block,
                                    uint64_t walked) const {
  if (last_batch_ == LastBatch::kStream) return PassInStream(block, walked);
  const uint32_t part = PartOf(epoch, block);
  return {.number = epoch, .part = part, .range = PartRange(part)};
}

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
PassLayout::Pass PassLayout::PassInStream(uint32_t block,
                                          uint64_t walked) const {
  const ShardTable::Range own = PartRange(block);
  if (!rotate_) {
    const uint64_t number = walked / own.size();
    return {number, block, own, number * own.size()};
  }
  const uint64_t at = (own.begin + walked % num_samples_) % num_samples_;
  // The last part that begins at or before it: ⌊N·part/n⌋ ≤ at.
  const auto part = static_cast<uint32_t>(
      (Wide{at} * num_parts_ + num_parts_ - 1) / num_samples_);
  const uint32_t parts_before = (part + num_parts_ - block) % num_parts_;
  const ShardTable::Range range = PartRange(part);
  return {.number = walked / num_samples_ * num_parts_ + parts_before,
          .part = part,
          .range = range,
          .begin = walked - (at - range.begin)};
}

uint64_t PassLayout::PositionIn(uint64_t size, uint64_t walked) const {
  if (walked < size) return walked;
  if (last_batch_ == LastBatch::kPartial) return kNoPosition;
  return last_batch_ == LastBatch::kFill ? walked % size : size - 1;
}

}  // namespace leat
