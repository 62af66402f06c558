// SPDX-License-Identifier: Apache-2.0
#include "core/plan/job_layout.h"

#include <utility>
#include <vector>

#include "core/status.h"

namespace leat {

absl::StatusOr<GroupShares> GroupSharesOf(const Selection& selection,
                                          const DatasetInfo& dataset) {
  if (dataset.groups.empty())
    return InvalidArgument(
        "weights: the samples of dataset \"{}\" are not in runs by label, so "
        "it has no classes to weigh; want by, as in select(by=\"label\", "
        "weights=...); or readers.image_folder, or readers.file_list or "
        "readers.files with all files of a label one after the other; and at "
        "most {} labels",
        dataset.name, kMaxGroups);
  if (HasSampleWeights(selection)) return GroupShares::Weighed(dataset.groups);
  return selection.balanced
             ? GroupShares::Balanced(dataset.groups)
             : GroupShares::Create(dataset.groups, selection.shares);
}

absl::StatusOr<ShareLayout> ShareLayoutOf(
    const JobSpec& spec, std::span<const DatasetInfo> datasets) {
  const bool mixture = IsMixture(spec);
  std::vector<ShareLayout::Source> sources;
  for (size_t i = 0; i < datasets.size(); ++i) {
    ShareLayout::Source source{
        .name = mixture ? spec.sources[i].name : datasets[i].name,
        .num_samples = datasets[i].shards.num_samples(),
        .groups = {}};
    // A dataset without samples has its own error.
    if (HasGroupShares(SelectionOf(spec, i)) && source.num_samples > 0) {
      absl::StatusOr<GroupShares> groups =
          GroupSharesOf(SelectionOf(spec, i), datasets[i]);
      if (!groups.ok() && mixture)
        return Annotate(groups.status(),
                        fmt::format("source \"{}\"", source.name));
      RETURN_IF_ERROR(groups.status());
      source.groups = *std::move(groups);
    }
    sources.push_back(std::move(source));
  }
  if (mixture) {
    ASSIGN_OR_RETURN(ShareSchedule schedule, ScheduleOf(spec));
    return ShareLayout::Create(std::move(schedule), std::move(sources),
                               spec.mix_end, spec.seed);
  }
  const SharesFrom whole[] = {{.from_step = 0, .weights = {1}}};
  const std::string names[] = {sources[0].name};
  ASSIGN_OR_RETURN(ShareSchedule schedule,
                   ShareSchedule::Create(whole, names, spec.batch));
  return ShareLayout::Create(
      std::move(schedule), std::move(sources),
      spec.last_batch == LastBatch::kStream ? MixEnd::kStream : MixEnd::kFirst,
      spec.seed);
}

}  // namespace leat
