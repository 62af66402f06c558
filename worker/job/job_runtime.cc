// SPDX-License-Identifier: Apache-2.0
#include "worker/job/job_runtime.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/redaction.h"
#include "core/status.h"
#include "worker/cache/sample_forms.h"
#include "worker/job/row_partner.h"
#include "worker/job/staged_rows.h"
#include "worker/source/faults/fault_rules.h"

namespace leat::worker {
namespace {

absl::Status CheckSchema(const JobInfo& job, const CheckedGraph& graph) {
  BatchSchema schema = graph.schema;
  if (HasValidField(job.spec))
    schema.fields.push_back({.name = std::string(kValidField),
                             .dtype = DType::kBool,
                             .shape = {},
                             .row_bytes = 1});
  if (schema == job.schema) return absl::OkStatus();
  return FailedPrecondition(
      "job {}: its schema is not that of its pipeline: the coordinator is of "
      "another version",
      job.spec.name);
}

// Digests everything that a row depends on except its RowKey. Jobs that cut the
// same samples into other batches, in another order, have the same rows, unless
// these depend on their steps.
Digest SharingKeyOf(const JobInfo& job, Finish finish, bool depends_on_step) {
  Sha256 hash;
  hash.UpdateField("leat.shared-rows.1");
  hash.UpdateField(CanonicalText(job.spec.pipeline));
  hash.Update(std::as_bytes(std::span(job.dataset.fingerprint)));
  hash.UpdateU64(job.spec.seed);
  hash.UpdateU64(static_cast<uint64_t>(job.spec.decoder_class));
  hash.UpdateU64(static_cast<uint64_t>(finish));
  hash.UpdateU64(HasValidField(job.spec));
  if (depends_on_step) hash.Update(std::as_bytes(std::span(job.plan_hash)));
  return hash.Finish();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const JobRuntime>> JobRuntime::Create(
    JobInfo job, std::shared_ptr<const Source> source,
    const RuntimeContext* context, Finish finish) {
  ASSIGN_OR_RETURN(CheckedGraph graph, CheckSpec(job.spec, job.dataset.types));
  RETURN_IF_ERROR(CheckAgainst(job.spec, job.dataset));
  RETURN_IF_ERROR(CheckSchema(job, graph));
  if (PlanHash(job.spec, job.dataset) != job.plan_hash)
    return FailedPrecondition("job {}: its plan hash is not that of its spec",
                              job.spec.name);
  auto kept = std::make_unique<const JobInfo>(std::move(job));
  ASSIGN_OR_RETURN(std::unique_ptr<const SourceRuntime> opened,
                   SourceRuntime::Create(*kept, std::move(graph),
                                         std::move(source), context, finish));
  return std::shared_ptr<const JobRuntime>(
      new JobRuntime(std::move(kept), std::move(opened), context, finish));
}

JobRuntime::JobRuntime(std::unique_ptr<const JobInfo> job,
                       std::unique_ptr<const SourceRuntime> source,
                       const RuntimeContext* context, Finish finish)
    : job_(std::move(job)),
      source_(std::move(source)),
      context_(context),
      plan_(job_->spec, job_->dataset.shards),
      rule_(job_.get(), &plan_, &source_->records().source(),
            context->bad_samples),
      has_valid_field_(HasValidField(job_->spec)),
      depends_on_step_(source_->has_partners() ||
                       DrawsForSteps(job_->spec.pipeline)),
      sharing_key_(SharingKeyOf(*job_, finish, depends_on_step_)),
      field_bytes_(source_->field_bytes()) {
  if (has_valid_field_) field_bytes_.push_back(1);
}

std::shared_ptr<const void> JobRuntime::BeginUse() const {
  return context_->cache->BeginUse(source_->records().in_memory());
}

std::unique_ptr<FormHorizon::Reading> JobRuntime::BeginReading(
    const IteratorEnd& end) const {
  const auto rows = static_cast<double>(end.rows);
  const auto batch = static_cast<double>(job_->spec.batch);
  return std::make_unique<FormHorizon::Reading>(
      SampleCache::HorizonOf(source_->records().in_memory()),
      FormHorizon::Iterator{
          .job = job_->plan_hash,
          .share = end.rows == 0 ? 1.0 : std::min(1.0, rows / batch),
          .end_epoch = end.end_epoch,
          .steps_per_epoch = plan_.steps_per_epoch()});
}

RowKey JobRuntime::KeyOf(const RowOf& row) const {
  RowKey key{.epoch = PassOf(row),
             .sample = row.sample,
             .padding = has_valid_field_ && IsPadding(row)};
  if (depends_on_step_) {
    key.step = row.step;
    key.row = row.row;
  }
  return key;
}

RowOf JobRuntime::PartnerOf(RowOf row) const {
  if (row.step >= plan_.steps_per_epoch()) return row;
  const uint32_t rows[] = {row.row,
                           plan_.PartnerOf(row.epoch, row.step, row.row)};
  uint64_t samples[2];
  plan_.Samples(row.epoch, row.step, rows, samples);
  if (samples[0] != row.sample) return row;
  row.row = rows[1];
  row.sample = samples[1];
  return row;
}

RowRecords JobRuntime::ReadAhead(const RowOf& row) const {
  RowRecords records = {
      {.sample = row.sample,
       .stored = source_->records().Read({.sample = row.sample})}};
  if (!source_->has_partners()) return records;
  const uint64_t partner = PartnerOf(row).sample;
  if (partner != row.sample)
    records.push_back({.sample = partner,
                       .stored = source_->records().Read({.sample = partner})});
  return records;
}

std::vector<RowRecords> JobRuntime::ReadTogether(
    std::span<const RowOf> rows) const {
  return source_->records().ReadTogether(rows);
}

size_t JobRuntime::CountTogether(std::span<const uint64_t> samples) const {
  // Partners may be anywhere.
  return source_->has_partners() ? 1
                                 : source_->records().CountTogether(samples);
}

std::unique_ptr<GroupStage> JobRuntime::BeginGroup(
    const GroupOutputs& outputs) const {
  std::unique_ptr<KernelGroup> group = source_->kernel().BeginGroup(outputs);
  if (group == nullptr) return nullptr;
  return StageRows(shared_from_this(), outputs.rows, std::move(group));
}

absl::Status JobRuntime::Try(
    const RowOf& row, RowPartner* partner, ThreadState* state,
    std::span<const std::span<std::byte>> outputs) const {
  ASSIGN_OR_RETURN(const StoredSample stored,
                   source_->records().Read({.sample = row.sample,
                                            .supplied = row.supplied,
                                            .read_ahead = row.records}));
  SampleForms forms = source_->records().FormsOf(row.sample, row.epoch, stored);
  RowInput input = source_->InputOf(row, PassOf(row), row.sample);
  input.fields = stored.fields;
  input.partner = partner;
  input.forms = &forms;
  absl::Status status = source_->kernel().Run(input, state, outputs);
  return partner->failed() ? Judged(std::move(status))
                           : source_->records().OfRecord(row.sample, status);
}

absl::Status JobRuntime::AfterBadSample(
    const RowOf& row, const absl::Status& status, RowPartner* partner,
    ThreadState* state, std::span<const std::span<std::byte>> outputs) const {
  if (row.bad != nullptr) *row.bad = true;
  RowCandidate candidate(PassOf(row), row.sample, row.absent);
  candidate.partner_bad = partner->bad();
  RETURN_IF_ERROR(rule_.AfterBadSample(&candidate, status, [&] {
    RowOf of = row;
    of.sample = candidate.candidate;
    absl::Status tried = Try(of, partner, state, outputs);
    candidate.partner_bad = partner->bad();
    return tried;
  }));
  if (rule_.policy() == BadSamplePolicy::kZero)
    for (const std::span<std::byte> output : outputs)
      std::memset(output.data(), 0, output.size());
  return absl::OkStatus();
}

absl::Status JobRuntime::Compute(
    const RowOf& row, ThreadState* state,
    std::span<const std::span<std::byte>> outputs) const {
  const auto images = outputs.first(outputs.size() - has_valid_field_);
  RowPartner partner(*this, row);
  const absl::Status status = Try(row, &partner, state, images);
  bool valid = status.ok();
  if (!valid) {
    if (!IsBad(status, row.absent)) return status;
    RETURN_IF_ERROR(AfterBadSample(row, status, &partner, state, images));
    valid = rule_.policy() != BadSamplePolicy::kZero;
  }
  if (has_valid_field_) outputs.back()[0] = std::byte{valid && !IsPadding(row)};
  return absl::OkStatus();
}

absl::Status JobRuntime::CheckRequest(const RowRequest& request) const {
  if (request.rows.size() != request.samples.size())
    return InvalidArgument("request {}: {} rows and {} samples",
                           request.request_id, request.rows.size(),
                           request.samples.size());
  const size_t supplied = source_->supplied() ? request.rows.size() : 0;
  if (request.supplied.size() != supplied)
    return InvalidArgument(
        "request {}: {} samples supplied with it, want {}: the job reads {}",
        request.request_id, request.supplied.size(), supplied,
        Redacted(job_->dataset.reader));
  if (request.absent.size() > kMaxAbsent)
    return InvalidArgument("request {}: {} absent samples, want up to {}",
                           request.request_id, request.absent.size(),
                           kMaxAbsent);
  for (const uint64_t sample : request.absent)
    if (sample >= plan_.num_samples())
      return InvalidArgument("request {}: absent sample {}: want less than {}",
                             request.request_id, sample, plan_.num_samples());
  for (const uint64_t sample : request.samples)
    if (sample >= plan_.num_samples())
      return InvalidArgument("request {}: sample {}: want less than {}",
                             request.request_id, sample, plan_.num_samples());
  for (const uint32_t row : request.rows)
    if (row >= plan_.batch())
      return InvalidArgument("request {}: row {}: want less than {}",
                             request.request_id, row, plan_.batch());
  RETURN_IF_ERROR(Annotate(plan_.CheckEpoch(request.epoch),
                           fmt::format("request {}", request.request_id)));
  if (request.rows.size() <= 1) return absl::OkStatus();
  if (request.step >= plan_.steps_per_epoch())
    return InvalidArgument("request {}: step {}: want less than {}",
                           request.request_id, request.step,
                           plan_.steps_per_epoch());
  std::vector<uint64_t> expected(request.rows.size());
  plan_.Samples(request.epoch, request.step, request.rows, expected);
  const auto [theirs, ours] = std::mismatch(
      request.samples.begin(), request.samples.end(), expected.begin());
  if (theirs == request.samples.end()) return absl::OkStatus();
  return InvalidArgument(
      "request {}: epoch {} step {} row {}: sample {}, but the plan says {}",
      request.request_id, request.epoch, request.step,
      request.rows[static_cast<size_t>(theirs - request.samples.begin())],
      *theirs, *ours);
}

}  // namespace leat::worker
