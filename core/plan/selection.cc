// SPDX-License-Identifier: Apache-2.0
#include "core/plan/selection.h"

#include <algorithm>
#include <cmath>

#include "core/pipeline/canonical.h"
#include "core/status.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

constexpr size_t kShownShares = 4;

// The order in which shares were written changes no row.
std::vector<GroupShare> Sorted(std::vector<GroupShare> shares) {
  std::ranges::stable_sort(shares, {}, &GroupShare::name);
  return shares;
}

}  // namespace

std::string_view GroupNameOf(std::span<const Group> groups, uint64_t sample) {
  for (const Group& group : groups) {
    if (sample < group.samples)
      return group.weight == 0 ? std::string_view(group.name) : "";
    sample -= group.samples;
  }
  return "";
}

std::string CanonicalText(const Selection& selection, bool place) {
  std::string text = CanonicalText(selection.arrangement, place);
  if (selection.balanced) text += "balanced\n";
  for (const GroupShare& share : Sorted(selection.shares)) {
    text += "share ";
    AppendQuoted(share.name, &text);
    text.push_back(' ');
    AppendDouble(share.share, &text);
    text.push_back('\n');
  }
  return text;
}

std::string ShownText(const Selection& selection) {
  if (!IsSet(selection)) return "all samples";
  std::vector<std::string> texts;
  if (IsSet(selection.arrangement))
    texts.push_back(ShownText(selection.arrangement));
  if (selection.balanced) texts.emplace_back("balanced");
  const size_t before = texts.size();
  for (const GroupShare& share : Sorted(selection.shares)) {
    if (texts.size() == before + kShownShares) {
      texts.push_back(
          fmt::format("{} more", selection.shares.size() - kShownShares));
      break;
    }
    texts.push_back(fmt::format("{}={}", share.name, share.share));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

absl::Status CheckSelection(const Selection& selection) {
  RETURN_IF_ERROR(CheckArrangement(selection.arrangement));
  const std::vector<GroupShare>& shares = selection.shares;
  const bool of_groups = selection.balanced || !shares.empty();
  if (HasSampleWeights(selection) && of_groups)
    return InvalidArgument(
        "weights are of samples, and of groups: want one of both");
  if (!selection.arrangement.by.empty() && !of_groups)
    return InvalidArgument(
        "by: {}: want weights with it, \"balanced\" or shares by value",
        selection.arrangement.by);
  if (selection.balanced && !shares.empty())
    return InvalidArgument(
        "weights are \"balanced\", and {} shares are given: want one of both",
        shares.size());
  if (shares.size() > kMaxGroups)
    return InvalidArgument("weights has {} groups: want at most {}",
                           shares.size(), kMaxGroups);
  for (const GroupShare& share : shares)
    if (!(share.share >= 0) || std::isinf(share.share))
      return InvalidArgument("weights[\"{}\"] = {}; want a number of 0 or more",
                             share.name, share.share);
  const std::vector<GroupShare> sorted = Sorted(shares);
  const auto twice = std::ranges::adjacent_find(sorted, {}, &GroupShare::name);
  if (twice != sorted.end())
    return InvalidArgument("weights has \"{}\" twice", twice->name);
  return absl::OkStatus();
}

}  // namespace leat
