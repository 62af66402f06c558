// SPDX-License-Identifier: Apache-2.0
//
// ReportPacking: the rows that a pipeline packs, for `leat inspect` of a file
// with a pipeline or a job.
//
// The rows are listed as a worker lists them for a job, with the documents that
// the job selects, so that their number and how full they are are a job's. The
// dataset's index is in memory, which SourceLimits::max_index_bytes bounds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/plan/job.h"
#include "worker/index_command/dataset_report.h"
#include "worker/source/source.h"

namespace leat::worker {

inline constexpr uint64_t kMaxPipelineFileBytes = 16 << 20;
inline constexpr int kMaxPipelineDepth = 100;  // levels of its JSON

// Reads the JSON of a leat.v1.JobSpec, of a leat.v1.Graph, which
// Pipeline.to_dict returns, or of a job that `leat describe job` shows. Returns
// a job of the source alone. `source`: its name in a mixture, else empty.
// kInvalidArgument: it is none of these, or has no such source; names them.
absl::StatusOr<JobSpec> ReadPipeline(std::string_view json,
                                     const std::string& source);

// Returns a report as ReportDataset does: of the dataset `uri`, `format`,
// `reader`, `records`, `bytes`; of the rows `name`, `fields`, `fingerprint`,
// `content`, `passed_over`; `sequences`, whose `packed` has one entry with `how`,
// the pipeline's; and `example`, the first row with its `documents`.
// kInvalidArgument: the pipeline packs nothing, or the dataset makes no row.
// Others: those of BuildIndex and Arrange.
absl::StatusOr<std::string> ReportPacking(const JobSpec& job,
                                          const SourceLimits& limits,
                                          ReportProgress* progress);

}  // namespace leat::worker
