// SPDX-License-Identifier: Apache-2.0
//
// SourceRuntime: one source of a job, ready to be read and computed: a dataset's
// records, the kernel that computes its rows, and the seed of their draws. A
// mixture has several; any other job has one.
//
// Samples have the job's numbers everywhere. Only draws are keyed by a sample's
// number in its own dataset, so that a source of a mixture has the rows of a
// job of its own.
//
// JobRuntime (job_runtime.h) decides which sample a row holds, and what happens
// if it is bad. Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/epilogue.h"
#include "core/plan/job.h"
#include "worker/compute/row_kernel.h"
#include "worker/compute/row_work.h"
#include "worker/job/record_reader.h"
#include "worker/job/runtime_context.h"
#include "worker/source/source.h"

namespace leat::worker {

// Compiles the kernels of a job. Sources whose pipelines differ only in
// the reader share one. Thread-compatible.
class JobKernels {
 public:
  using Kernel = std::shared_ptr<const RowKernel>;

  // `context` outlives it. `epilogue`: whether rows have the whole fields, or
  // their heads.
  JobKernels(const RuntimeContext* context, DecoderClass decoder_class,
             Epilogue epilogue)
      : context_(context), decoder_class_(decoder_class), epilogue_(epilogue) {}

  // kUnimplemented: this worker's hardware cannot run the pipeline.
  // kInvalidArgument: its rows have other sizes than those of the sources
  // before it, since their heads differ.
  absl::StatusOr<Kernel> Of(CheckedGraph graph);
  // Returns the kernel of all sources; nullptr: they have different ones.
  Kernel only() const {
    return kernels_.size() == 1 ? kernels_[0].second : nullptr;
  }
  // The bytes that a kernel writes per row, per field: those of all kernels.
  const std::vector<size_t>& field_bytes() const { return field_bytes_; }

 private:
  const RuntimeContext* const context_;
  const DecoderClass decoder_class_;
  const Epilogue epilogue_;
  std::vector<std::pair<Digest, Kernel>> kernels_;  // by what they depend on
  std::vector<size_t> field_bytes_;
};

class SourceRuntime {
 public:
  // `number`: which source of the job it is, and `graph` its checked pipeline.
  // `first`: the job's number of its first sample. `job` and `context` outlive
  // the result. kFailedPrecondition: the index is not the dataset's. Other
  // errors: as JobKernels::Of.
  static absl::StatusOr<std::unique_ptr<const SourceRuntime>> Create(
      const JobInfo& job, uint32_t number, uint64_t first, CheckedGraph graph,
      std::shared_ptr<const Source> source, const RuntimeContext* context,
      JobKernels* kernels);

  const DatasetInfo& dataset() const { return dataset_; }
  const RecordReader& records() const { return records_; }
  const RowKernel& kernel() const { return *kernel_; }
  // The job's number of its first sample.
  uint64_t first_sample() const { return first_; }
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
            .sample = sample - first_,
            .step = row.step,
            .step_epoch = row.epoch};
  }

 private:
  SourceRuntime(const JobInfo& job, uint32_t number, uint64_t first,
                RecordPlaces places, const RuntimeContext* context,
                bool reads_ahead, JobKernels::Kernel kernel);

  const DatasetInfo& dataset_;
  const uint64_t seed_;
  const uint64_t first_;
  const RecordReader records_;
  const JobKernels::Kernel kernel_;
  const bool supplied_;
  const bool reads_ahead_;
  const bool has_partners_;
};

}  // namespace leat::worker
