// SPDX-License-Identifier: Apache-2.0
//
// Plan: the pure function (job, epoch, step, row) -> sample.
//
// order(epoch) is a bijection of [0, N): sequential, a keyed Feistel
// permutation (core/random/permutation.h), or shards permuted and then samples
// permuted inside a sliding window of shards. Global layout: row r of step s is
// order[s·G + r]. Part layout (n parts): rows [k·G/n, (k+1)·G/n) belong to part
// k and walk its samples [⌊N·k/n⌋, ⌊N·(k+1)/n⌋), in an order of the part's own;
// if parts are mixed, they walk these places of the epoch's order of all
// samples. If parts rotate, these rows walk part (k + epoch) mod n. All parts
// have the
// same number of steps: of the smallest part under kDrop, of the largest
// otherwise.
//
// What lacks at the end of a part is its last sample again under kPad and kMask
// (where these rows are padding), its first samples under kFill, and no row
// under kPartial.
//
// Under LastBatch::kStream there is one epoch, without an end. Rows k·G/n …
// walk pass after pass: pass p over part k, or (k + p) mod n, begins where the
// one before has ended, inside a batch if need be. What elsewhere depends on
// the epoch depends on the row's pass; what all rows of a step share (partners,
// draws for a batch) depends on the step alone.
//
// Immutable after construction; thread-safe; O(1) memory but for kShardShuffle,
// which is O(shards).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/plan/job.h"
#include "core/plan/shard_table.h"

namespace leat {

// A row that holds no sample: beyond the end under LastBatch::kPartial.
inline constexpr uint64_t kNoSample = ~uint64_t{0};

// Steps of the only epoch under LastBatch::kStream: more than anybody takes.
inline constexpr uint64_t kStreamSteps = uint64_t{1} << 40;

class Plan {
 public:
  // REQUIRES: CheckAgainst(spec, dataset) is OK.
  Plan(const JobSpec& spec, const ShardTable& shards);
  ~Plan();
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;

  uint64_t num_samples() const;
  uint64_t steps_per_epoch() const;
  // kInvalidArgument: under kStream, an epoch other than its only one, 0.
  absl::Status CheckEpoch(uint64_t epoch) const;
  uint32_t batch() const;
  // Rows that hold a sample of their own: batch() but for the last steps under
  // kPartial and kMask (sum over parts). REQUIRES: step < steps_per_epoch().
  uint32_t rows_in(uint64_t step) const;
  // Under kMask: whether the row only fills the step, with the last sample of
  // its part once more. REQUIRES: as Samples.
  bool IsPadding(uint64_t epoch, uint64_t step, uint32_t row) const;
  // samples[i] = the sample in rows[i], or kNoSample. REQUIRES: step <
  // steps_per_epoch(), every row < batch(), sizes equal.
  void Samples(uint64_t epoch, uint64_t step, std::span<const uint32_t> rows,
               std::span<uint64_t> samples) const;
  // What a row's own random draws take for their epoch: `epoch`, or under
  // kStream its pass over the data.
  uint64_t PassOf(uint64_t epoch, uint64_t step, uint32_t row) const;
  // The row of the same step that is the partner of `row`: the k-th after it,
  // cyclically, among those that hold samples; k ≥ 1 is drawn for each step, so
  // that every row is the partner of exactly one. Returns `row` itself if the
  // step holds only one row.
  // Padding's partner is such a row, too, but it is nobody's. REQUIRES: step <
  // steps_per_epoch(), `row` holds a sample or is padding. O(1); O(parts) in
  // last steps under kPartial and kMask.
  uint32_t PartnerOf(uint64_t epoch, uint64_t step, uint32_t row) const;
  // Under BadSamplePolicy::kReplace: the `attempt`-th (from 0) substitute for a
  // bad sample; never the sample itself if N > 1.
  uint64_t Substitute(uint64_t epoch, uint64_t sample, uint32_t attempt) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whether a number of the pipeline is drawn for all rows of a step.
bool DrawsForSteps(const Graph& pipeline);

// Substitutes tried before a bad sample fails its job.
inline constexpr uint32_t kMaxSubstitutes = 16;

}  // namespace leat
