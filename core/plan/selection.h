// SPDX-License-Identifier: Apache-2.0
//
// Selection is what a job takes of a pipeline's dataset, where it is not simply
// all samples in passes: the shares of groups.
//
// A group is a contiguous run of a dataset's samples, as a class of an image
// folder is. The listing tells which groups there are (Group). GroupShares
// (group_shares.h) deals out the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/plan/arrangement.h"

namespace leat {

inline constexpr size_t kMaxGroups = 65536;  // of a dataset

// A run of samples. Groups follow each other from sample 0 on.
struct Group {
  std::string name;
  uint64_t samples = 0;
  // How often each of its samples comes, as against those of other groups; 0:
  // samples have no weights.
  uint64_t weight = 0;

  friend bool operator==(const Group&, const Group&) = default;
};

// Returns the name of the class that the sample is of; "": there is none, as
// where groups are of one weight. O(groups).
std::string_view GroupNameOf(std::span<const Group> groups, uint64_t sample);

// A share of the rows, as users write it.
struct GroupShare {
  std::string name;  // kOtherGroups: each other group has an even part of it
  double share = 0;

  friend bool operator==(const GroupShare&, const GroupShare&) = default;
};
inline constexpr std::string_view kOtherGroups = "*";

struct Selection {
  // Which samples there are; groups are runs of these. If it has weights of
  // samples, these make the shares of groups.
  Arrangement arrangement;
  // At most one of these is set, and none beside weights of samples.
  bool balanced = false;           // every group that has samples, evenly
  std::vector<GroupShare> shares;  // of groups

  friend bool operator==(const Selection&, const Selection&) = default;
};

// Returns whether samples have weights of their own.
inline bool HasSampleWeights(const Selection& selection) {
  return IsSet(selection.arrangement.weights);
}
// Returns whether rows come from groups in shares.
inline bool HasGroupShares(const Selection& selection) {
  return selection.balanced || !selection.shares.empty() ||
         HasSampleWeights(selection);
}
// Returns whether the selection says anything. Without one a job has all
// samples in passes, and its hashes do not mention a selection.
inline bool IsSet(const Selection& selection) {
  return HasGroupShares(selection) || IsSet(selection.arrangement);
}

// Returns one line for each thing that the selection says, with shares in the
// order of their names: "balanced\n", "share \"cat\" 0x1p-1\n". Plan hashes
// contain it. "" if nothing is set. `place`: as for arrangements.
std::string CanonicalText(const Selection& selection, bool place = true);
// Returns the same for people: "balanced", "cat=0.5 dog=0.5", "0:40000 by label
// balanced"; "all samples" if nothing is set.
std::string ShownText(const Selection& selection);

// Checks what needs no dataset. kInvalidArgument names the value: two of
// balanced, shares and weights of samples; a column for groups that have no
// shares; more than kMaxGroups shares, a name that comes twice, a share that is
// not a number of 0 or more; or as CheckArrangement.
absl::Status CheckSelection(const Selection& selection);

}  // namespace leat
