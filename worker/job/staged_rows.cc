// SPDX-License-Identifier: Apache-2.0
//
// What happens to bad samples where rows go through a device in groups: the
// same as JobRuntime::Compute's, row by row, only that a sample may turn out
// bad after the group has run. Such rows take their next substitute, or become
// zeros, in another run of the group; one that fails for good fails alone. A
// row that a group cannot judge is prepared again before that.
#include <utility>
#include <vector>

#include "core/cluster/blame.h"
#include "core/observe/stages.h"
#include "core/status.h"
#include "worker/cache/sample_forms.h"
#include "worker/job/job_runtime.h"
#include "worker/job/row_partner.h"
#include "worker/source/faults/blame_rules.h"

namespace leat::worker {

class StagedRows final : public GroupStage {
 public:
  StagedRows(std::shared_ptr<const JobRuntime> job, size_t rows,
             std::unique_ptr<KernelGroup> group)
      : job_(std::move(job)), rows_(rows), group_(std::move(group)) {}

  absl::Status Prepare(size_t index, const RowOf& row,
                       ThreadState* state) override {
    rows_[index] = {.of = row, .candidate = row.sample};
    rows_[index].of.records = nullptr;  // not kept
    return TryOrReplace(index, row.records, state);
  }

  void Forget(size_t index) override { group_->Forget(index); }

  void Finish(Done done) override {
    done_ = std::move(done);
    Run();
  }

 private:
  // A row and the sample that it is made of at present.
  struct Row {
    RowOf of;
    uint64_t candidate = 0;
    uint32_t attempt = 0;      // the next substitute
    absl::Status reason;       // what was wrong with of.sample
    bool partner_bad = false;  // rather than the candidate
  };

  BadSamplePolicy policy() const { return job_->job().spec.on_bad_sample; }

  absl::Status Try(size_t row, const RowRecords* records, ThreadState* state) {
    Row& r = rows_[row];
    ASSIGN_OR_RETURN(StoredSample stored,
                     job_->Stored(r.candidate, r.of.brought, records));
    RowOf of = r.of;
    of.records = records;
    RowPartner partner(*job_, of);
    SampleForms forms = job_->FormsOf(r.candidate, of.epoch, stored);
    const StageScope preparing(Stage::kDecode);
    absl::Status status = group_->Prepare(row,
                                          {.epoch = job_->PassOf(of),
                                           .sample = r.candidate,
                                           .step = of.step,
                                           .step_epoch = of.epoch,
                                           .partner = &partner,
                                           .padding = job_->IsPadding(of),
                                           .forms = &forms},
                                          std::move(stored), state);
    r.partner_bad = partner.bad();
    return partner.failed() ? Judged(std::move(status))
                            : job_->OfRecord(r.candidate, status);
  }

  // Prepares the row from its candidate or, if that is bad, as the policy says.
  absl::Status TryOrReplace(size_t row, const RowRecords* records,
                            ThreadState* state) {
    const absl::Status status = Try(row, records, state);
    if (!IsBad(status, rows_[row].of.absent)) return status;
    return AfterBadSample(row, status, state);
  }

  // The row's candidate is bad. OK: it is prepared from another one, or left to
  // become zeros.
  absl::Status AfterBadSample(size_t row, absl::Status status,
                              ThreadState* state) {
    Row& r = rows_[row];
    if (r.reason.ok()) r.reason = status;
    if (!r.partner_bad) job_->Report(r.candidate, status);
    if (policy() == BadSamplePolicy::kZero) return absl::OkStatus();
    if (policy() == BadSamplePolicy::kFail)
      return JobRuntime::Final(
          Annotate(status, fmt::format("sample {}", r.of.sample)));
    if (r.partner_bad) return JobRuntime::Final(status);
    while (r.attempt < kMaxSubstitutes) {
      r.candidate =
          job_->plan().Substitute(job_->PassOf(r.of), r.of.sample, r.attempt++);
      status = Try(row, nullptr, state);
      if (!IsBad(status, r.of.absent)) return status;
      if (r.partner_bad) return JobRuntime::Final(status);
      job_->Report(r.candidate, status);
    }
    return JobRuntime::Exhausted(r.of.sample, r.reason);
  }

  void Run() {
    group_->Run([this](std::span<const absl::Status> rows, ThreadState* state) {
      OnRun(rows, state);
    });
  }

  void OnRun(std::span<const absl::Status> rows, ThreadState* state) {
    for (const absl::Status& each : rows)
      if (const absl::Status status = Judged(each);
          !status.ok() && !absl::IsAborted(each) &&
          BlameOf(status) != Blame::kSample)
        return Answer(std::vector<absl::Status>(rows.size(), status));
    failed_.resize(rows.size());
    bool again = false;
    for (size_t row = 0; row < rows.size(); ++row) {
      if (rows[row].ok()) continue;
      failed_[row] =
          absl::IsAborted(rows[row])
              ? TryOrReplace(row, nullptr, state)
              : AfterBadSample(row,
                               job_->OfRecord(rows_[row].candidate, rows[row]),
                               state);
      if (failed_[row].ok())
        again = true;
      else
        group_->Forget(row);
    }
    if (again) return Run();
    Answer(std::move(failed_));
  }

  // This object is not touched afterwards: `done_` may drop it.
  void Answer(std::vector<absl::Status> rows) {
    const Done done = std::move(done_);
    done(std::move(rows));
  }

  const std::shared_ptr<const JobRuntime> job_;
  std::vector<Row> rows_;
  std::vector<absl::Status> failed_;  // by row, as far as it is known
  Done done_;
  const std::unique_ptr<KernelGroup> group_;
};

std::unique_ptr<GroupStage> JobRuntime::BeginGroup(
    const GroupOutputs& outputs) const {
  std::unique_ptr<KernelGroup> group = kernel_->BeginGroup(outputs);
  if (group == nullptr) return nullptr;
  return std::make_unique<StagedRows>(shared_from_this(), outputs.rows,
                                      std::move(group));
}

}  // namespace leat::worker
