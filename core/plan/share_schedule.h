// SPDX-License-Identifier: Apache-2.0
//
// ShareSchedule has the shares of a mixture's sources at each step, and says
// which source a row is of.
//
// A schedule is a list of segments. Segment g has weights for all sources, and
// is in force from step T_g on, until the next one begins; T_0 = 0. It deals
// its rows out by a ShareTree of its own (share_tree.h), as if its weights had
// always been in force. The sources' streams go on. With B_{g,i} the rows of
// source i before step T_g, and G the batch,
//
//     (i, j') = Locate_g(t·G + place)            place in the batch of step t
//     j = B_{g,i} + j' − Count_g(i, T_g·G)       row of source i's stream
//     B_{g+1,i} = B_{g,i} + Count_g(i, T_{g+1}·G) − Count_g(i, T_g·G)
//
// A tree that began anew at T_g would round alike in each segment, and this
// would add up: a source with a quarter of a row a step would never have a row
// if the weights changed a little at each step.
//
// After any step, the rows of a source differ from what the weights have
// promised by less than 1.68, and by less than 3.36 more for each segment after
// the first; these errors have no sign of their own. For example, a batch of 10
// with weights 7, 2, 1, and 0, 1, 1 from step 3 on: before step 3 the sources
// have 21, 6 and 3 rows; the first places of step 3 are row 3 of the third
// source and row 6 of the second.
//
// A segment whose shares are those of the one before it changes nothing, and is
// left out. A segment, or a source, that is appended changes no row before the
// step from which it counts. HistoryText and FirstDifference say what two
// schedules share.
//
// Thread-safe; immutable, except for a few trees that are kept. Memory: 16
// bytes for each source and segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/plan/mixture.h"
#include "core/plan/share_tree.h"

namespace leat {

class ShareSchedule {
 public:
  // Deals rows out as one segment does. It is valid as long as its schedule.
  class Segment {
   public:
    const ShareTree& tree() const { return *tree_; }
    // Returns the source of the row at `place` of the batch of `step`, and which
    // row of the source's stream it is. REQUIRES: the segment is in force at
    // `step`, place < batch, step < kStreamSteps.
    ShareTree::Place Locate(uint64_t step, uint32_t place) const;
    // Does the same for the places from `place` on, as ShareTree::DealOut.
    // REQUIRES: as Locate for each; order.size() ≤ ShareTree::kMostTogether.
    void DealOut(uint64_t step, uint32_t place, std::span<uint32_t> order,
                 std::vector<ShareTree::Hand>* hands) const;

   private:
    friend class ShareSchedule;
    uint32_t batch_ = 0;
    std::shared_ptr<const ShareTree>
        tree_;                           // also the schedule's, if it is kept
    std::span<const uint64_t> offsets_;  // of each source
  };

  // `names` are those of the sources. kInvalidArgument: not 1 to kMaxSources
  // sources; not 1 to kMaxSegments segments; a segment that has another number
  // of weights; the first does not begin at step 0; one does not begin after
  // the one before it, or not before kStreamSteps; weights that WholeWeights
  // refuses. Segment g is called `weights[g]`, or `weights` if it is the only
  // one. REQUIRES: batch ≥ 1.
  static absl::StatusOr<ShareSchedule> Create(
      std::span<const SharesFrom> shares, std::span<const std::string> names,
      uint32_t batch);
  ~ShareSchedule();
  ShareSchedule(ShareSchedule&&) noexcept;
  ShareSchedule& operator=(ShareSchedule&&) noexcept;

  uint32_t batch() const { return batch_; }
  size_t num_sources() const { return num_sources_; }
  // Segments that change the shares.
  size_t num_segments() const { return from_steps_.size(); }
  // REQUIRES: segment < num_segments().
  uint64_t from_step(size_t segment) const { return from_steps_[segment]; }
  // The whole weights of all sources. REQUIRES: as from_step.
  std::span<const uint64_t> weights(size_t segment) const {
    return std::span(weights_).subspan(segment * num_sources_, num_sources_);
  }

  // The number of the segment that is in force at `step`. O(log segments).
  size_t SegmentAt(uint64_t step) const;
  // The same segment, ready to locate rows. A segment that was not asked for
  // lately takes O(sources · log sources).
  Segment At(uint64_t step) const;
  // Returns the rows of the source before `step`. REQUIRES: step ≤
  // kStreamSteps, source < num_sources().
  uint64_t RowsBefore(uint64_t step, uint32_t source) const;
  // Sets rows[i] = RowsBefore(step, i). O(sources). REQUIRES: step ≤
  // kStreamSteps, rows.size() == num_sources().
  void RowsBefore(uint64_t step, std::span<uint64_t> rows) const;

  // Returns a text of all that the rows before `step` depend on: the segments
  // that begin before `step` (and always the first), with the number and the
  // whole weight of each source that has one. Equal texts mean equal rows, in
  // batches of one size. A position contains its hash. The text is long if
  // segments and sources are many, and the same up to the step at which another
  // segment begins, so that its hash can be kept.
  std::string HistoryText(uint64_t step) const;

 private:
  class KeptTrees;

  ShareSchedule(uint32_t batch, size_t num_sources);

  // A segment adds these to the row that its tree finds, one for each source:
  // B_{g,i} − Count_g(i, T_g·G), modulo 2^64.
  std::span<const uint64_t> offsets(size_t segment) const {
    return std::span(offsets_).subspan(segment * num_sources_, num_sources_);
  }

  uint32_t batch_ = 0;
  size_t num_sources_ = 0;
  // Segment after segment.
  std::vector<uint64_t> from_steps_;
  std::vector<uint64_t> weights_;
  std::vector<uint64_t> offsets_;
  std::unique_ptr<KeptTrees> trees_;
};

// Returns the first step whose rows differ between two schedules for batches of
// one size, or nullopt if all are equal. Their history texts are equal up to
// this step, and at step 0 always unless it is 0.
std::optional<uint64_t> FirstDifference(const ShareSchedule& a,
                                        const ShareSchedule& b);

}  // namespace leat
