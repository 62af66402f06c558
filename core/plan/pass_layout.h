// SPDX-License-Identifier: Apache-2.0
//
// PassLayout says which pass over which part each row of a step walks, and at
// which position.
//
// The rows of a batch of G are cut into n blocks of G/n, where n is the number
// of parts. Each block walks one part at a time. A row is the `offset`-th of
// its block, and its block has walked step × G/n + offset samples before it.
// One part is the global layout: row r of step s stands at position s·G + r of
// the epoch's order.
//
// Part k has the samples [⌊N·k/n⌋, ⌊N·(k+1)/n⌋), in an order of its own. If
// parts are mixed, the block walks these positions of the epoch's order of all
// samples. If parts rotate, block k walks part (k + epoch) mod n. All parts
// have the same number of steps: that of the smallest part under kDrop, of the
// largest otherwise.
//
// Rows beyond a part's end repeat its last sample under kPad and kMask (under
// kMask they are padding), walk its first samples again under kFill, and hold
// no sample under kPartial.
//
// Under LastBatch::kStream there is one epoch without an end. Block k walks
// pass after pass: pass p over part k, or over part (k + p) mod n, begins where
// the one before has ended, inside a batch if need be.
//
// Immutable; thread-safe; O(1) memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/plan/job.h"
#include "core/plan/layout.h"
#include "core/plan/sample_order.h"
#include "core/plan/shard_table.h"

namespace leat {

class PassLayout final : public Layout {
 public:
  // REQUIRES: CheckAgainst(spec, dataset) is OK.
  PassLayout(const JobSpec& spec, uint64_t num_samples);

  uint64_t steps_per_epoch() const override;
  uint32_t rows_in(uint64_t step) const override;
  // Rows of part `block`'s block that hold a sample of their own.
  uint64_t rows_in(uint64_t epoch, uint64_t step, uint32_t block) const;
  uint32_t block_rows() const { return block_rows_; }
  // How many runs a batch walks at a time.
  uint32_t num_runs() const { return mix_ ? 1 : num_parts_; }

  // Returns the stretch at the beginning of `rows`: they follow each other in
  // one pass over one run. Writes the position of each of its rows in the run's
  // order: kNoPosition if the row holds no sample. REQUIRES: `rows` is not
  // empty, each < the batch, step < steps_per_epoch(), sizes equal.
  Stretch Locate(uint64_t epoch, uint64_t step, std::span<const uint32_t> rows,
                 std::span<uint64_t> positions) const;
  // The pass that the row walks. REQUIRES: as Locate.
  uint64_t PassOf(uint64_t epoch, uint64_t step, uint32_t row) const;
  // Whether the row stands beyond its part's end, where kMask repeats the last
  // sample.
  bool IsPadding(uint64_t epoch, uint64_t step, uint32_t row) const override;
  Spot SpotOf(uint64_t epoch, uint64_t step, uint32_t row) const override;
  void Cut(uint64_t epoch, uint64_t step, std::span<const uint32_t> rows,
           Stretches* out) const override;

 private:
  // One pass of a block over a part.
  struct Pass {
    uint64_t number = 0;
    uint32_t part = 0;
    ShardTable::Range range;
    uint64_t begin = 0;  // samples that the block has walked before it
  };

  ShardTable::Range PartRange(uint32_t part) const;
  uint32_t PartOf(uint64_t epoch, uint32_t block) const;
  // Samples of a part of `size` samples that are in its rows of `step`, without
  // repetitions.
  uint64_t SamplesIn(uint64_t step, uint64_t size) const;
  // Samples that the row's block has walked before it.
  uint64_t WalkedAt(uint64_t step, uint32_t row) const;
  Pass PassAt(uint64_t epoch, uint32_t block, uint64_t walked) const;
  Pass PassInStream(uint32_t block, uint64_t walked) const;
  // Position in the order of a part of `size` samples.
  uint64_t PositionIn(uint64_t size, uint64_t walked) const;

  const LastBatch last_batch_;
  const uint32_t batch_;
  const uint64_t num_samples_;
  const uint32_t num_parts_;
  const bool rotate_;
  const bool mix_;
  const uint32_t block_rows_;
};

}  // namespace leat
