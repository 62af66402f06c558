// SPDX-License-Identifier: Apache-2.0
//
// ShareLayout is the layout of a mixture: it deals the rows of all steps out to
// sources in shares, and says where in its source each row stands. A job of one
// dataset has it, too, if the dataset's groups have shares.
//
// With G the batch, S the steps of an epoch, and t = epoch·S + step, row r of
// the step is, by the schedule (share_schedule.h),
//
//     row j of source i's stream,      (i, j) = Locate(t, π_t(r))
//     pass ⌊j / N_i⌋ over the source, at position j mod N_i
//
// with N_i the source's samples. If the source has shares of groups, GroupShares
// (group_shares.h) says instead at which pass and position over which group row
// j of the stream stands. So epochs continue the streams; and each source has
// the rows of a job of its own that streams with the seed SourceSeed(seed, i).
//
// π_t permutes the rows of a batch in runs of 64 (the last may be shorter),
//
//     π_t(64·a + b) = 64·a + Permutation(m, MixKey(MixKey(seed, t, "mixr"), a, 0))(b)
//
// with m the rows of the run. So a row may be of any source, and a host whose
// rows are whole runs has its share of each source up to twice 1.68 rows, as
// has the batch. For each run that a host has only a part of, the source's rows
// in this run are added to that.
//
// Steps of an epoch by MixEnd: kStream, no end (kStreamSteps); kFirst, the most
// in which no source begins its second pass; kAll, the fewest in which every
// source ends its first.
//
// For example batches of 10 from sources of 60, 40 and 5 samples, with weights
// 7, 2, 1: an epoch has 5 steps by kFirst, since the third source has a row in
// each; and 20 by kAll, when the second source has had its 40 rows.
//
// Thread-safe; immutable, except for trees that the schedule keeps. Memory is
// the schedule's and that of groups.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/plan/group_shares.h"
#include "core/plan/layout.h"
#include "core/plan/mixture.h"
#include "core/plan/share_schedule.h"

namespace leat {

// Returns the seed of orders and draws of a source of a mixture. A job of one
// source keeps its own.
uint64_t SourceSeed(uint64_t seed, uint32_t source);

class ShareLayout final : public Layout {
 public:
  struct Source {
    std::string name;
    uint64_t num_samples = 0;
    std::optional<GroupShares> groups;  // of the same samples
  };
  // Rows that one permutation mixes.
  static constexpr uint32_t kRun = 64;

  // kInvalidArgument: a source without samples; more than kMaxSamples in all;
  // ends other than kStream with several segments; kFirst if a source has fewer
  // samples than rows in the first batch; kAll if a source has the weight 0, or
  // so little that it does not end before kStreamSteps. REQUIRES: one source
  // for each of the schedule's.
  static absl::StatusOr<ShareLayout> Create(ShareSchedule schedule,
                                            std::vector<Source> sources,
                                            MixEnd ends, uint64_t seed);

  // kInvalidArgument: under kStream an epoch other than its only one, 0; an
  // epoch that ends after kStreamSteps steps of all epochs.
  absl::Status CheckEpoch(uint64_t epoch) const;
  // The number of the step among those of all epochs.
  uint64_t StepOfAll(uint64_t epoch, uint64_t step) const {
    return epoch * steps_per_epoch_ + step;
  }
  // Returns the source of a row, and which row of the source's stream it is.
  // REQUIRES: as SpotOf.
  ShareTree::Place RowOf(uint64_t epoch, uint64_t step, uint32_t row) const;
  const ShareSchedule& schedule() const { return schedule_; }
  std::span<const Source> sources() const { return sources_; }

  uint64_t steps_per_epoch() const override { return steps_per_epoch_; }
  uint32_t rows_in(uint64_t) const override { return schedule_.batch(); }
  bool IsPadding(uint64_t, uint64_t, uint32_t) const override { return false; }
  Spot SpotOf(uint64_t epoch, uint64_t step, uint32_t row) const override;
  void Cut(uint64_t epoch, uint64_t step, std::span<const uint32_t> rows,
           Stretches* out) const override;

 private:
  class Cutting;

  ShareLayout(ShareSchedule schedule, std::vector<Source> sources, MixEnd ends,
              uint64_t seed);
  // Sets steps_per_epoch_.
  absl::Status FindEnd();
  // Returns a source by which an epoch does not have `steps` steps: under kFirst
  // these are too many, under kAll too few.
  std::optional<uint32_t> SourceAgainst(uint64_t steps) const;
  SampleOrder::Run RunOf(uint32_t source, uint32_t group) const;
  Spot SpotIn(uint32_t source, uint64_t stream_row) const;

  ShareSchedule schedule_;
  std::vector<Source> sources_;
  MixEnd ends_;
  uint64_t seed_;
  uint64_t steps_per_epoch_ = kStreamSteps;
};

}  // namespace leat
