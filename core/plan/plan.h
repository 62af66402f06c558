// SPDX-License-Identifier: Apache-2.0
//
// Plan is the pure function (job, epoch, step, row) -> sample.
//
// It puts two parts together. A layout says which pass over which run of samples
// a row walks, and at which position: PassLayout (pass_layout.h), or ShareLayout
// in mixtures and of groups (job_layout.h). SampleOrder (sample_order.h) says
// which sample stands there.
//
// Under LastBatch::kStream there is one epoch without an end. Where elsewhere a
// value depends on the epoch, it depends on the row's pass; values that all
// rows of a step share (partners, draws for a batch) depend on the step alone.
//
// Immutable after construction; thread-safe; O(1) memory, except under
// Order::kShardShuffle: O(shards).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/plan/job.h"
#include "core/plan/layout.h"
#include "core/plan/shard_table.h"

namespace leat {

class ShareLayout;

// A row that holds no sample: beyond the end under LastBatch::kPartial.
inline constexpr uint64_t kNoSample = ~uint64_t{0};

class Plan {
 public:
  // The plan of a job of one dataset without shares of groups. REQUIRES:
  // CheckAgainst is OK.
  Plan(const JobSpec& spec, const ShardTable& shards);
  // The plan of any job. REQUIRES: CheckAgainst(spec, datasets) is OK.
  Plan(const JobSpec& spec, std::span<const DatasetInfo> datasets);
  ~Plan();
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;

  uint64_t num_samples() const;
  uint64_t steps_per_epoch() const;
  // kInvalidArgument: under kStream, an epoch other than its only one, 0.
  absl::Status CheckEpoch(uint64_t epoch) const;
  uint32_t batch() const;
  // Rows that hold a sample of their own: batch(), except in the last steps
  // under kPartial and kMask (the sum over parts). REQUIRES: step <
  // steps_per_epoch().
  uint32_t rows_in(uint64_t step) const;
  // Under kMask: whether the row only fills the step, by repeating the last
  // sample of its part. REQUIRES: as Samples.
  bool IsPadding(uint64_t epoch, uint64_t step, uint32_t row) const;
  // samples[i] = the sample in rows[i], or kNoSample. REQUIRES: step <
  // steps_per_epoch(), every row < batch(), sizes equal.
  void Samples(uint64_t epoch, uint64_t step, std::span<const uint32_t> rows,
               std::span<uint64_t> samples) const;
  // Returns the number that a row's own random draws take for their epoch:
  // `epoch`, or under kStream the row's pass over the data.
  uint64_t PassOf(uint64_t epoch, uint64_t step, uint32_t row) const;
  // Returns the partner of `row` in the same step: the k-th row after it,
  // cyclically, among those that hold samples. k ≥ 1 is drawn for each step, so
  // that every row is the partner of exactly one. Returns `row` itself if the
  // step holds only one row. A padding row also has a partner, but is never the
  // partner of another row. REQUIRES: step < steps_per_epoch(), `row` holds a
  // sample or is padding. O(1); O(parts) in last steps under kPartial and
  // kMask.
  uint32_t PartnerOf(uint64_t epoch, uint64_t step, uint32_t row) const;
  // Under BadSamplePolicy::kReplace: the `attempt`-th (from 0) substitute for a
  // bad sample, from the same source, and from the same group if its groups
  // have shares; never the sample itself if there are others.
  uint64_t Substitute(uint64_t epoch, uint64_t sample, uint32_t attempt) const;
  // Returns the number of the source that the sample is of. O(log sources).
  // REQUIRES: sample < num_samples().
  uint32_t SourceOf(uint64_t sample) const;
  // Returns the layout in shares; nullptr: the job has none (HasShareLayout).
  const ShareLayout* shares() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whether a number of the pipeline is drawn for all rows of a step.
bool DrawsForSteps(const Graph& pipeline);

// Substitutes tried before a bad sample fails its job.
inline constexpr uint32_t kMaxSubstitutes = 16;

}  // namespace leat
