// SPDX-License-Identifier: Apache-2.0
//
// CheckJob checks a job as a user requests it, and CheckAgainst checks the
// conditions that need its datasets. Both are pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "core/plan/job.h"

namespace leat {

struct CheckedJob {
  std::vector<CheckedGraph> sources;  // the checked pipelines, in their order
  // The fields of a batch: the pipelines' outputs, then the source's number if
  // the spec names a field for it, then kValidField if HasValidField. Empty if
  // the job is not typed.
  BatchSchema schema;
  // False: the types of a pipeline depend on its dataset, which was not given.
  bool typed = true;
};

// Checks everything in `spec` that does not need the datasets: name, batch,
// parts, pipelines, shares. `datasets`: one per source, whose types are used;
// without them a pipeline that needs types is not fully checked.
// kInvalidArgument names the field, the value and what was expected; in a
// mixture the source, too.
absl::StatusOr<CheckedJob> CheckJob(const JobSpec& spec,
                                    std::span<const DatasetInfo> datasets = {});

// Digests what the computation of a source's rows depends on, which is its
// pipeline except the reader's arguments: sources with equal digests can share
// a kernel. REQUIRES: the graph is typed.
Digest ComputationOf(const CheckedGraph& graph);

// Checks that GPUs can compute the rows of a typed job in groups: a group has
// one kernel, and no number of a row's source. Always OK unless it is a mixture.
// kUnimplemented: the reason. CheckDeviceForms (core/pipeline/device_forms.h)
// checks the pipelines.
absl::Status CheckOneKernel(const JobSpec& spec, const CheckedJob& job);

// Checks that each dataset has samples, and that batches can be made of them:
// batch ≤ num_samples (or a part's samples) under kDrop. kInvalidArgument.
// REQUIRES: one dataset per source.
absl::Status CheckAgainst(const JobSpec& spec,
                          std::span<const DatasetInfo> datasets);

}  // namespace leat
