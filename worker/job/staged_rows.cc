// SPDX-License-Identifier: Apache-2.0
#include "worker/job/staged_rows.h"

#include <utility>
#include <vector>

#include "core/cluster/fault.h"
#include "core/observe/stages.h"
#include "core/status.h"
#include "worker/cache/sample_forms.h"
#include "worker/job/bad_sample_rule.h"
#include "worker/job/record_reader.h"
#include "worker/job/row_partner.h"
#include "worker/source/faults/fault_rules.h"

namespace leat::worker {
namespace {

class StagedRows final : public GroupStage {
 public:
  StagedRows(std::shared_ptr<const JobRuntime> job, size_t rows,
             std::unique_ptr<KernelGroup> group)
      : job_(std::move(job)), rows_(rows), group_(std::move(group)) {}

  absl::Status Prepare(size_t index, const RowOf& row,
                       ThreadState* state) override {
    rows_[index] = {.of = row,
                    .made_of = {job_->PassOf(row), row.sample, row.absent}};
    rows_[index].of.records = nullptr;  // not kept
    return TryOrReplace(index, row.records, state);
  }

  void Forget(size_t index) override { group_->Forget(index); }

  void Finish(Done done) override {
    done_ = std::move(done);
    Run();
  }

 private:
  struct Row {
    RowOf of;
    RowCandidate made_of;
  };

  absl::Status Try(size_t row, const RowRecords* records, ThreadState* state) {
    Row& r = rows_[row];
    const uint64_t candidate = r.made_of.candidate;
    const SourceRuntime& source = job_->SourceOf(candidate);
    ASSIGN_OR_RETURN(StoredSample stored,
                     source.records().Read({.sample = candidate,
                                            .supplied = r.of.supplied,
                                            .read_ahead = records}));
    RowOf of = r.of;
    of.records = records;
    RowPartner partner(*job_, of);
    SampleForms forms = source.records().FormsOf(candidate, of.epoch, stored);
    const StageScope preparing(Stage::kDecode);
    RowInput input = source.InputOf(of, r.made_of.pass, candidate);
    input.partner = &partner;
    input.padding = job_->IsPadding(of);
    input.forms = &forms;
    absl::Status status = group_->Prepare(row, input, std::move(stored), state);
    r.made_of.partner_bad = partner.bad();
    return partner.failed() ? Judged(std::move(status))
                            : source.records().OfRecord(candidate, status);
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
  absl::Status AfterBadSample(size_t row, const absl::Status& status,
                              ThreadState* state) {
    return job_->rule().AfterBadSample(
        &rows_[row].made_of, status, [&] { return Try(row, nullptr, state); });
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
          FaultOf(status) != Fault::kSample)
        return Answer(std::vector<absl::Status>(rows.size(), status));
    failed_.resize(rows.size());
    bool again = false;
    for (size_t row = 0; row < rows.size(); ++row) {
      if (rows[row].ok()) continue;
      failed_[row] =
          absl::IsAborted(rows[row])
              ? TryOrReplace(row, nullptr, state)
              : AfterBadSample(
                    row, OfRecord(rows_[row].made_of.candidate, rows[row]),
                    state);
      if (failed_[row].ok())
        again = true;
      else
        group_->Forget(row);
    }
    if (again) return Run();
    Answer(std::move(failed_));
  }

  absl::Status OfRecord(uint64_t sample, const absl::Status& status) const {
    return job_->SourceOf(sample).records().OfRecord(sample, status);
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

}  // namespace

std::unique_ptr<GroupStage> StageRows(std::shared_ptr<const JobRuntime> job,
                                      size_t rows,
                                      std::unique_ptr<KernelGroup> group) {
  return std::make_unique<StagedRows>(std::move(job), rows, std::move(group));
}

}  // namespace leat::worker
