// SPDX-License-Identifier: Apache-2.0
//
// JobRuntime: a job made ready to compute: its plan, its records, its kernel,
// and what happens to samples that cannot be computed.
//
// Whatever can be tried again is (worker/job/storage_reader.h), and what
// becomes of a bad sample is the policy's matter
// (worker/job/bad_sample_rule.h). Errors of rows say where their cause lies
// (core/cluster/fault.h), and of which sample. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/finish.h"
#include "core/plan/job.h"
#include "core/plan/plan.h"
#include "worker/cache/form_horizon.h"
#include "worker/compute/row_kernel.h"
#include "worker/compute/row_work.h"
#include "worker/job/bad_sample_rule.h"
#include "worker/job/record_reader.h"
#include "worker/job/runtime_context.h"
#include "worker/source/source.h"

namespace leat::worker {

class RowPartner;

class JobRuntime final : public RowWork,
                         public std::enable_shared_from_this<JobRuntime> {
 public:
  // Checks the job again, as if nobody had. `finish`: what the rows are: the
  // fields, or their heads.
  // kFailedPrecondition: the job does not fit the source. kUnimplemented: not
  // with this worker's hardware.
  static absl::StatusOr<std::shared_ptr<const JobRuntime>> Create(
      JobInfo job, std::shared_ptr<const Source> source,
      const RuntimeContext* context, Finish finish = Finish::kWorker);

  const JobInfo& job() const { return job_; }
  const Plan& plan() const { return plan_; }
  const Source& source() const { return records_.source(); }
  const RecordReader& records() const { return records_; }
  const BadSampleRule& rule() const { return rule_; }
  // The job is being read while what is returned lives: caches keep its dataset
  // (worker/source/disk_cache/dataset_uses.h).
  std::shared_ptr<const void> BeginUse() const;
  // An iterator that says this reads the job while what is returned lives.
  std::unique_ptr<FormHorizon::Reading> BeginReading(
      const IteratorEnd& end) const;
  // The row that is this one's partner.
  RowOf PartnerOf(RowOf row) const;
  // The epoch of a row's random draws.
  uint64_t PassOf(const RowOf& row) const {
    return plan_.PassOf(row.epoch, row.step, row.row);
  }
  bool IsPadding(const RowOf& row) const {
    return plan_.IsPadding(row.epoch, row.step, row.row);
  }

  const std::string& job_key() const override { return job_.spec.name; }
  std::span<const size_t> field_bytes() const override { return field_bytes_; }
  uint64_t steps_per_epoch() const override { return plan_.steps_per_epoch(); }
  absl::Status Compute(
      const RowOf& row, ThreadState* state,
      std::span<const std::span<std::byte>> outputs) const override;
  const Digest* sharing_key() const override {
    return supplied_ ? nullptr : &sharing_key_;
  }
  RowKey KeyOf(const RowOf& row) const override;
  bool reads_ahead() const override { return reads_ahead_; }
  RowRecords ReadAhead(const RowOf& row) const override;
  std::vector<RowRecords> ReadTogether(
      std::span<const RowOf> rows) const override;
  size_t CountTogether(std::span<const uint64_t> samples) const override;
  bool staged(bool on_device) const override {
    return kernel_->staged(on_device);
  }
  size_t most_rows() const override { return kernel_->most_rows(); }
  bool CanBegin(int device) const override { return kernel_->CanBegin(device); }
  std::unique_ptr<GroupStage> BeginGroup(
      const GroupOutputs& outputs) const override;

  // That samples are brought if the job's reader wants that, that those which
  // are absent are the job's, and that each row of a step holds the sample that
  // the plan puts there. A lone row may hold any sample: it is how single
  // samples are looked at. kInvalidArgument: names the first row that does not.
  absl::Status CheckRequest(const RowRequest& request) const;

 private:
  JobRuntime(JobInfo job, Finish finish, RecordPlaces places,
             const RuntimeContext* context, const BatchSchema& rows,
             bool supplied, std::unique_ptr<RowKernel> kernel,
             bool reads_ahead);
  // Computes the row from its sample.
  absl::Status Try(const RowOf& row, RowPartner* partner, ThreadState* state,
                   std::span<const std::span<std::byte>> outputs) const;
  // The row's sample is bad: computes it as the policy says.
  absl::Status AfterBadSample(
      const RowOf& row, const absl::Status& status, RowPartner* partner,
      ThreadState* state, std::span<const std::span<std::byte>> outputs) const;

  const JobInfo job_;
  const RuntimeContext* const context_;
  const std::unique_ptr<RowKernel> kernel_;
  const Plan plan_;
  const RecordReader records_;
  const BadSampleRule rule_;
  const bool has_valid_field_;
  const bool has_partners_;
  const bool depends_on_step_;  // rows, beside their samples
  const Digest sharing_key_;
  const bool reads_ahead_;
  const bool supplied_;  // by clients; otherwise the samples are stored
  std::vector<size_t> field_bytes_;
};

}  // namespace leat::worker
