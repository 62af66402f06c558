// SPDX-License-Identifier: Apache-2.0
//
// GroupShares walks groups of a dataset's samples in shares, as for classes in
// balance.
//
// A group is a contiguous run of samples, as the class of an image folder is.
// Group c has n_c samples from sample s_c on. A ShareTree over the groups
// (share_tree.h) deals out the rows of the dataset's endless stream: row k is
// the j-th of group c, and stands in pass ⌊j / n_c⌋ over the group, at position
// j mod n_c. Each group has an order of its own, whose number is c
// (sample_order.h).
//
// So after any number of rows, the samples of one group differ by at most one
// in how often they came, and each group is within 1.68 rows of its share.
// Nothing is drawn with replacement. For example groups of 1 and 3 samples in
// balance, a and b c d, in their order: b a c a d a b …
//
// Immutable; thread-safe; O(groups) memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/plan/sample_order.h"
#include "core/plan/selection.h"
#include "core/plan/share_tree.h"

namespace leat {

class GroupShares {
 public:
  // Balance: every group that has samples gets the same share.
  // kInvalidArgument: not 1 to kMaxGroups groups, or none has samples.
  static absl::StatusOr<GroupShares> Balanced(std::span<const Group> groups);
  // kInvalidArgument: as Balanced; a share of an unknown group, or a second one
  // of a group; a group with samples that has none; a share over 0 of a group
  // without samples; kOtherGroups if there are no others; shares that
  // WholeWeights refuses.
  static absl::StatusOr<GroupShares> Create(std::span<const Group> groups,
                                            std::span<const GroupShare> shares);
  // Weights of samples: a group's share is its weight times its samples. So a
  // sample's rows are as many as its weight says, whatever its group has.
  // kInvalidArgument: as Balanced; a group with samples and no weight; a sum
  // over ShareTree::kMaxSum.
  static absl::StatusOr<GroupShares> Weighed(std::span<const Group> groups);

  struct Place {
    SampleOrder::Run run;  // its number is the group's
    uint64_t pass = 0;
    uint64_t position = 0;  // in the pass
  };
  // Returns the place of row k of the dataset's stream.
  Place Locate(uint64_t k) const;

  // Returns the number of the group that the sample is of. O(log groups).
  // REQUIRES: sample < num_samples().
  uint32_t GroupOf(uint64_t sample) const;

  uint32_t num_groups() const {
    return static_cast<uint32_t>(tree_.weights().size());
  }
  uint64_t num_samples() const { return starts_.back(); }
  const ShareTree& tree() const { return tree_; }
  // False: they are of one weight, and have no other meaning.
  bool are_classes() const { return are_classes_; }
  // REQUIRES: group < num_groups().
  SampleOrder::Run RunOf(uint32_t group) const {
    return {{starts_[group], starts_[group + 1]}, group};
  }

 private:
  GroupShares(std::span<const Group> groups, std::vector<uint64_t> weights,
              bool are_classes);
  static absl::StatusOr<GroupShares> FromWeights(
      std::span<const Group> groups, std::span<const double> weights);

  std::vector<uint64_t> starts_;  // and the end
  ShareTree tree_;
  bool are_classes_;
};

}  // namespace leat
