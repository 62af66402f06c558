// SPDX-License-Identifier: Apache-2.0
//
// JobRuntime: a job that is ready to compute: its plan, its sources
// (source_runtime.h), and its handling of samples that cannot be computed.
//
// Operations that can be tried again are (worker/job/storage_reader.h), and the
// policy decides about a bad sample (worker/job/bad_sample_rule.h). Errors of
// rows say where their cause lies (core/cluster/fault.h), and in which sample.
// Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/epilogue.h"
#include "core/plan/job.h"
#include "core/plan/plan.h"
#include "worker/cache/form_horizon.h"
#include "worker/compute/row_work.h"
#include "worker/job/bad_sample_rule.h"
#include "worker/job/runtime_context.h"
#include "worker/job/source_runtime.h"
#include "worker/source/source.h"

namespace leat::worker {

class RowPartner;

class JobRuntime final : public RowWork,
                         public std::enable_shared_from_this<JobRuntime> {
 public:
  // Checks the job again, without trust in earlier checks. `sources`: the
  // records of each of the job's datasets, in their order. `epilogue`: whether
  // rows have the whole fields, or their heads. kFailedPrecondition: the job
  // does not fit the sources. kUnimplemented: this worker's hardware cannot run
  // it.
  static absl::StatusOr<std::shared_ptr<const JobRuntime>> Create(
      JobInfo job, std::vector<std::shared_ptr<const Source>> sources,
      const RuntimeContext* context, Epilogue epilogue = Epilogue::kWorker);

  const JobInfo& job() const { return *job_; }
  const Plan& plan() const { return plan_; }
  // Returns the source of a sample. REQUIRES: it is one of the job's.
  const SourceRuntime& SourceOf(uint64_t sample) const {
    return sources_.size() == 1 ? *sources_[0]
                                : *sources_[plan_.SourceOf(sample)];
  }
  std::span<const std::unique_ptr<const SourceRuntime>> sources() const {
    return sources_;
  }
  const BadSampleRule& rule() const { return rule_; }
  // Counts the job as being read while the result exists: caches keep its
  // datasets (worker/source/disk_cache/dataset_uses.h).
  std::shared_ptr<const void> BeginUse() const;
  // An iterator with this end reads the job while the result exists.
  class Reading {
   public:
    // The iterator requests rows of this step.
    void At(uint64_t epoch, uint64_t step) const {
      for (const auto& each : of_sources_) each->At(epoch, step);
    }

   private:
    friend class JobRuntime;
    std::vector<std::unique_ptr<FormHorizon::Reading>> of_sources_;
  };
  std::shared_ptr<const Reading> BeginReading(const IteratorEnd& end) const;
  // Returns the row that is this one's partner.
  RowOf PartnerOf(RowOf row) const;
  // Returns the epoch of a row's random draws.
  uint64_t PassOf(const RowOf& row) const {
    return plan_.PassOf(row.epoch, row.step, row.row);
  }
  bool IsPadding(const RowOf& row) const {
    return plan_.IsPadding(row.epoch, row.step, row.row);
  }

  const std::string& job_key() const override { return job_->spec.name; }
  std::span<const size_t> field_bytes() const override { return field_bytes_; }
  uint64_t steps_per_epoch() const override { return plan_.steps_per_epoch(); }
  absl::Status Compute(
      const RowOf& row, ThreadState* state,
      std::span<const std::span<std::byte>> outputs) const override;
  const Digest* sharing_key() const override {
    return sources_[0]->supplied() ? nullptr : &sharing_key_;
  }
  RowKey KeyOf(const RowOf& row) const override;
  bool reads_ahead() const override { return reads_ahead_; }
  RowRecords ReadAhead(const RowOf& row) const override;
  std::vector<RowRecords> ReadTogether(
      std::span<const RowOf> rows) const override;
  size_t CountTogether(std::span<const uint64_t> samples) const override;
  const GroupLimits& groups() const override {
    return kernel_ == nullptr ? RowWork::groups() : *kernel_;
  }
  std::unique_ptr<GroupStage> BeginGroup(
      const GroupOutputs& outputs) const override;

  // Checks that the client supplies samples if the job's reader requires it,
  // that the absent samples are the job's, and that each row of a step holds
  // the sample that the plan puts there. A lone row may hold any sample, so
  // that single samples can be inspected. kInvalidArgument: names the first row
  // that is wrong.
  absl::Status CheckRequest(const RowRequest& request) const;

 private:
  using Sources = std::vector<std::unique_ptr<const SourceRuntime>>;

  // `sources`: of `job`, whose address is kept.
  JobRuntime(std::unique_ptr<const JobInfo> job, Sources sources,
             const JobKernels& kernels, const RuntimeContext* context,
             Epilogue epilogue);
  bool Any(bool (SourceRuntime::*is)() const) const;
  // Writes the fields that are not the pipeline's: the number of the row's
  // source, and whether the row is valid.
  void SetOwnFields(const RowOf& row, bool valid,
                    std::span<const std::span<std::byte>> outputs) const;
  // Computes the row from its sample.
  absl::Status Try(const RowOf& row, RowPartner* partner, ThreadState* state,
                   std::span<const std::span<std::byte>> outputs) const;
  // The row's sample is bad: computes it as the policy says.
  absl::Status AfterBadSample(
      const RowOf& row, const absl::Status& status, RowPartner* partner,
      ThreadState* state, std::span<const std::span<std::byte>> outputs) const;

  const std::unique_ptr<const JobInfo> job_;  // the parts below refer to it
  const Sources sources_;
  // Computes rows in groups; nullptr: each row is computed by its source's.
  const JobKernels::Kernel kernel_;
  const RuntimeContext* const context_;
  const Plan plan_;
  const BadSampleRule rule_;
  const size_t own_fields_;  // that no kernel writes
  const bool has_valid_field_;
  const bool has_partners_;
  const bool reads_ahead_;
  const bool depends_on_step_;  // rows do, apart from their samples
  const Digest sharing_key_;
  std::vector<size_t> field_bytes_;
};

}  // namespace leat::worker
