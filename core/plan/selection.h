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

  friend bool operator==(const Group&, const Group&) = default;
};

// Returns the name of the group that the sample is of; "": there is none.
// O(groups).
std::string_view GroupNameOf(std::span<const Group> groups, uint64_t sample);

// A share of the rows, as users write it.
struct GroupShare {
  std::string name;  // kOtherGroups: each other group has an even part of it
  double share = 0;

  friend bool operator==(const GroupShare&, const GroupShare&) = default;
};
inline constexpr std::string_view kOtherGroups = "*";

struct Selection {
  // Which samples there are; groups are runs of these.
  Arrangement arrangement;
  // At most one of these is set.
  bool balanced = false;           // every group that has samples, evenly
  std::vector<GroupShare> shares;  // of groups

  friend bool operator==(const Selection&, const Selection&) = default;
};

// Returns whether rows come from groups in shares.
inline bool HasGroupShares(const Selection& selection) {
  return selection.balanced || !selection.shares.empty();
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
// Returns the same for people: "balanced", "cat=0.5 dog=0.5"; "all samples" if
// nothing is set.
std::string ShownText(const Selection& selection);

// Checks what needs no dataset. kInvalidArgument names the value: balanced and
// shares together, more than kMaxGroups shares, a name that comes twice, or a
// share that is not a number of 0 or more.
absl::Status CheckSelection(const Selection& selection);

}  // namespace leat
