// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/describe_groups.h"

#include <algorithm>
#include <string>
#include <utility>

#include "client/cli/base/fields.h"
#include "client/cli/base/text.h"
#include "client/cli/views/describe_sources.h"
#include "core/plan/group_shares.h"
#include "fmt/format.h"

namespace leat::cli {
namespace {

constexpr size_t kShownSections = 8;
constexpr size_t kShownGroups = 100;

bool HasWeights(const Json& selection) {
  const Json& weights = At(selection, "weights");
  return !Items(weights, "list").empty() || !Text(weights, "uri").empty();
}

absl::StatusOr<GroupShares> SharesOf(const Json& selection,
                                     const std::vector<Group>& groups) {
  if (Text(selection, "balanced") == "true")
    return GroupShares::Balanced(groups);
  if (HasWeights(selection)) return GroupShares::Weighed(groups);
  std::vector<GroupShare> shares;
  for (const Json& share : Items(selection, "shares"))
    shares.push_back({Text(share, "name"), Number(share, "share")});
  return GroupShares::Create(groups, shares);
}

// Adds the section of one dataset, `rows` rows after it began.
void AddSection(const std::string& source, const Json& selection,
                const Json& dataset, uint64_t rows,
                std::vector<Section>* sections) {
  std::vector<Group> groups;
  for (const Json& group : Items(dataset, "groups"))
    groups.push_back(
        {Text(group, "name"), Whole(group, "samples"), Whole(group, "weight")});
  const absl::StatusOr<GroupShares> shares = SharesOf(selection, groups);
  if (!shares.ok()) return;  // of a coordinator that checks otherwise
  std::vector<uint64_t> so_far(groups.size());
  shares->tree().Counts(rows, so_far);
  Section section;
  section.title =
      fmt::format("{}{} ({}), after {} rows",
                  shares->are_classes() ? "Classes" : "Weights of samples",
                  source.empty() ? "" : " of " + source, groups.size(), rows);
  Table& table = section.table;
  table.columns = {{shares->are_classes() ? "CLASS" : "WEIGHT"},
                   {"SAMPLES", 2, false, true},
                   {"SHARE(%)", 0, false, true},
                   {"ROWS SO FAR", 3, false, true},
                   {"PASS", 0, false, true}};
  const auto sum = static_cast<double>(shares->tree().sum());
  for (size_t i = 0; i < std::min(groups.size(), kShownGroups); ++i)
    table.rows.push_back(
        {{groups[i].name, Tone::kBold},
         fmt::format("{}", groups[i].samples),
         fmt::format(
             "{:.1f}",
             100.0 * static_cast<double>(shares->tree().weights()[i]) / sum),
         fmt::format("{}", so_far[i]),
         PassText(so_far[i], groups[i].samples)});
  if (groups.size() > kShownGroups)
    section.lines.push_back(
        {fmt::format("{} more", groups.size() - kShownGroups)});
  sections->push_back(std::move(section));
}

bool IsSet(const Json& selection) {
  return Text(selection, "balanced") == "true" ||
         !Items(selection, "shares").empty() || HasWeights(selection);
}

}  // namespace

std::vector<Section> GroupsOf(const Json& job) {
  std::vector<Section> sections;
  const Json& spec = At(job, "job.spec");
  const std::vector<uint64_t> rows = RowsSoFar(job);
  const Json& sources = Items(spec, "sources");
  if (sources.empty() && IsSet(At(spec, "selection")))
    AddSection("", At(spec, "selection"), At(job, "job.dataset"), rows[0],
               &sections);
  const Json& datasets = Items(job, "job.datasets");
  for (size_t i = 0;
       i < std::min({sources.size(), datasets.size(), rows.size()}); ++i)
    if (IsSet(At(sources[i], "selection")) && sections.size() < kShownSections)
      AddSection(Text(sources[i], "name"), At(sources[i], "selection"),
                 datasets[i], rows[i], &sections);
  return sections;
}

}  // namespace leat::cli
