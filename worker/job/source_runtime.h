// SPDX-License-Identifier: Apache-2.0
//
// SourceRuntime: a dataset of a job, ready to be read and computed: its
// records, the kernel that computes its rows, and the seed of their draws.
//
// JobRuntime (job_runtime.h) decides which sample a row holds, and what happens
// if it is bad. Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/finish.h"
#include "core/plan/job.h"
#include "worker/compute/row_kernel.h"
#include "worker/compute/row_work.h"
#include "worker/job/record_reader.h"
#include "worker/job/runtime_context.h"
#include "worker/source/source.h"

namespace leat::worker {

class SourceRuntime {
 public:
  // `graph`: the job's pipeline, checked against the dataset's types. `finish`:
  // whether rows have the whole fields, or their heads. `job` and `context`
  // outlive the result. kFailedPrecondition: the index is not the dataset's.
  // kUnimplemented: this worker's hardware cannot run the pipeline.
  static absl::StatusOr<std::unique_ptr<const SourceRuntime>> Create(
      const JobInfo& job, CheckedGraph graph,
      std::shared_ptr<const Source> source, const RuntimeContext* context,
      Finish finish);

  const RecordReader& records() const { return records_; }
  const RowKernel& kernel() const { return *kernel_; }
  // The bytes that the kernel writes per row, per field.
  const std::vector<size_t>& field_bytes() const { return field_bytes_; }
  // True if clients send the samples; otherwise they are stored.
  bool supplied() const { return supplied_; }
  // True if records are read before a decode thread takes their row.
  bool reads_ahead() const { return reads_ahead_; }
  // True if rows use the values of their partners.
  bool has_partners() const { return has_partners_; }

  // Returns the input that computes the row of `sample`, without its fields,
  // partner and forms. `pass`: the epoch of the row's own draws.
  RowInput InputOf(const RowOf& row, uint64_t pass, uint64_t sample) const {
    return {.seed = seed_,
            .epoch = pass,
            .sample = sample,
            .step = row.step,
            .step_epoch = row.epoch};
  }

 private:
  SourceRuntime(const JobInfo& job, RecordPlaces places,
                const RuntimeContext* context, const CheckedGraph& rows,
                bool reads_ahead, std::unique_ptr<RowKernel> kernel);

  const uint64_t seed_;
  const RecordReader records_;
  const std::unique_ptr<RowKernel> kernel_;
  std::vector<size_t> field_bytes_;
  const bool supplied_;
  const bool reads_ahead_;
  const bool has_partners_;
};

}  // namespace leat::worker
