// SPDX-License-Identifier: Apache-2.0
#include "core/plan/group_shares.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/edit_distance.h"
#include "core/plan/whole_weights.h"
#include "core/status.h"

namespace leat {
namespace {

absl::Status CheckGroups(std::span<const Group> groups) {
  if (groups.empty() || groups.size() > kMaxGroups)
    return InvalidArgument("{} groups: want 1 to {}", groups.size(),
                           kMaxGroups);
  if (std::ranges::all_of(groups,
                          [](const Group& group) { return !group.samples; }))
    return InvalidArgument("none of {} groups has samples", groups.size());
  return absl::OkStatus();
}

absl::Status UnknownGroup(std::span<const Group> groups,
                          const std::string& name) {
  const auto distance = [&](const Group& group) {
    return EditDistance(group.name, name);
  };
  const Group& nearest = *std::ranges::min_element(groups, {}, distance);
  return distance(nearest) * 2 <= std::max(nearest.name.size(), name.size())
             ? InvalidArgument(
                   "weights has \"{}\", which is no group; did you mean "
                   "\"{}\"?",
                   name, nearest.name)
             : InvalidArgument(
                   "weights has \"{}\", which is none of {} groups; \"{}\" is "
                   "one",
                   name, groups.size(), groups.front().name);
}

using Numbers = absl::flat_hash_map<std::string_view, size_t>;

// Writes the shares of groups that are named; returns that of the others.
absl::StatusOr<std::optional<double>> NamedShares(
    std::span<const Group> groups, std::span<const GroupShare> shares,
    std::span<std::optional<double>> weights) {
  Numbers numbers;
  for (size_t i = 0; i < groups.size(); ++i) numbers.emplace(groups[i].name, i);
  std::optional<double> others;
  for (const GroupShare& share : shares) {
    const bool is_others = share.name == kOtherGroups;
    const auto number = numbers.find(share.name);
    if (!is_others && number == numbers.end())
      return UnknownGroup(groups, share.name);
    std::optional<double>& weight =
        is_others ? others : weights[number->second];
    if (weight) return InvalidArgument("weights has \"{}\" twice", share.name);
    if (!(share.share >= 0))
      return InvalidArgument("weights[\"{}\"] = {}; want a number of 0 or more",
                             share.name, share.share);
    if (share.share > 0 && !is_others && groups[number->second].samples == 0)
      return InvalidArgument(
          "weights[\"{}\"] = {}, but this group has no samples; want 0",
          share.name, share.share);
    weight = share.share;
  }
  return others;
}

}  // namespace

GroupShares::GroupShares(std::span<const Group> groups,
                         std::vector<uint64_t> weights, bool are_classes)
    : starts_{0}, tree_(std::move(weights)), are_classes_(are_classes) {
  for (const Group& group : groups)
    starts_.push_back(starts_.back() + group.samples);
}

absl::StatusOr<GroupShares> GroupShares::FromWeights(
    std::span<const Group> groups, std::span<const double> weights) {
  std::vector<std::string> names;
  for (const Group& group : groups) names.push_back(group.name);
  ASSIGN_OR_RETURN(std::vector<uint64_t> whole, WholeWeights(weights, names));
  return GroupShares(groups, std::move(whole), /*are_classes=*/true);
}

absl::StatusOr<GroupShares> GroupShares::Weighed(
    std::span<const Group> groups) {
  RETURN_IF_ERROR(CheckGroups(groups));
  std::vector<uint64_t> weights;
  uint64_t rest = ShareTree::kMaxSum;
  for (const Group& group : groups) {
    if (group.samples > 0 && group.weight == 0)
      return InvalidArgument("group \"{}\" of {} samples has no weight",
                             group.name, group.samples);
    if (group.samples > 0 && group.weight > rest / group.samples)
      return InvalidArgument(
          "weights of samples have a sum over {}: want a smaller one",
          ShareTree::kMaxSum);
    weights.push_back(group.samples * group.weight);
    rest -= weights.back();
  }
  return GroupShares(groups, std::move(weights), /*are_classes=*/false);
}

absl::StatusOr<GroupShares> GroupShares::Balanced(
    std::span<const Group> groups) {
  RETURN_IF_ERROR(CheckGroups(groups));
  std::vector<double> weights;
  for (const Group& group : groups)
    weights.push_back(group.samples > 0 ? 1 : 0);
  return FromWeights(groups, weights);
}

absl::StatusOr<GroupShares> GroupShares::Create(
    std::span<const Group> groups, std::span<const GroupShare> shares) {
  RETURN_IF_ERROR(CheckGroups(groups));
  std::vector<std::optional<double>> named(groups.size());
  ASSIGN_OR_RETURN(const std::optional<double> others,
                   NamedShares(groups, shares, named));
  // Groups without samples need no share.
  const auto is_other = [&](size_t i) {
    return !named[i] && groups[i].samples > 0;
  };
  size_t num_others = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!is_other(i)) continue;
    if (!others)
      return InvalidArgument(
          "weights has no \"{}\"; want every group named, or \"{}\" for the "
          "others",
          groups[i].name, kOtherGroups);
    ++num_others;
  }
  if (others && num_others == 0)
    return InvalidArgument(
        "weights[\"{}\"] = {}, but every group with samples is named",
        kOtherGroups, *others);
  std::vector<double> weights(groups.size());
  for (size_t i = 0; i < groups.size(); ++i)
    weights[i] = is_other(i) ? *others / static_cast<double>(num_others)
                             : named[i].value_or(0);
  return FromWeights(groups, weights);
}

GroupShares::Place GroupShares::Locate(uint64_t k) const {
  const ShareTree::Place place = tree_.Locate(k);
  const SampleOrder::Run run = RunOf(place.leaf);
  const uint64_t pass = place.index / run.range.size();
  return {.run = run,
          .pass = pass,
          .position = place.index - pass * run.range.size()};
}

uint32_t GroupShares::GroupOf(uint64_t sample) const {
  return static_cast<uint32_t>(std::ranges::upper_bound(starts_, sample) -
                               starts_.begin() - 1);
}

}  // namespace leat
