// SPDX-License-Identifier: Apache-2.0
#include "client/api/created_job.h"

#include <string>
#include <utility>
#include <vector>

#include "core/plan/checked_job.h"
#include "core/status.h"
#include "rpc/wire/messages.h"

namespace leat::client {
namespace {

// Normalises the pipelines of `wanted`, as the coordinator has normalised those
// of its job.
absl::StatusOr<JobSpec> Normalised(const JobSpec& wanted, const v1::Job& job) {
  std::vector<DatasetInfo> datasets;
  const auto add = [&](const v1::Dataset& proto) {
    absl::StatusOr<std::vector<ValueType>> types =
        rpc::FromProto(proto.types());
    if (types.ok()) datasets.emplace_back().types = *std::move(types);
    return types.status();
  };
  if (!IsMixture(wanted)) RETURN_IF_ERROR(add(job.dataset()));
  for (const v1::Dataset& proto : job.datasets()) RETURN_IF_ERROR(add(proto));
  ASSIGN_OR_RETURN(CheckedJob checked, CheckJob(wanted, datasets));
  JobSpec normalised = wanted;
  for (size_t i = 0; i < checked.sources.size(); ++i)
    PipelineOf(normalised, i) = std::move(checked.sources[i].graph);
  return normalised;
}

}  // namespace

absl::Status CheckCreated(const JobSpec& wanted, const v1::Job& job) {
  ASSIGN_OR_RETURN(const JobSpec made, rpc::FromProto(job.spec()));
  std::string difference;
  if (NumSources(made) != NumSources(wanted)) {
    difference = Difference(made, wanted);
  } else {
    ASSIGN_OR_RETURN(const JobSpec normalised, Normalised(wanted, job));
    difference = Difference(made, normalised);
  }
  if (difference.empty()) return absl::OkStatus();
  return FailedPrecondition(
      "job {}: the coordinator made another job than it was asked for (its "
      "value != ours): {}; want a coordinator of this version, which knows "
      "these fields",
      wanted.name, difference);
}

}  // namespace leat::client
