// SPDX-License-Identifier: Apache-2.0
//
// StageRows: a job's rows on their way through a device. BadSampleRule decides
// about bad samples, row by row, as in JobRuntime::Compute, except that a
// sample may turn out bad after the group has run. Such rows take their next
// substitute, or become zeros, in another run of the group; one that fails
// permanently fails alone. A row that a group cannot judge is prepared again
// before that.
#pragma once

#include <cstddef>
#include <memory>

#include "worker/compute/row_kernel.h"
#include "worker/compute/row_work.h"
#include "worker/job/job_runtime.h"

namespace leat::worker {

// Returns a stage for `rows` rows, which `group` computes.
std::unique_ptr<GroupStage> StageRows(std::shared_ptr<const JobRuntime> job,
                                      size_t rows,
                                      std::unique_ptr<KernelGroup> group);

}  // namespace leat::worker
