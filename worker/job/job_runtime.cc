// SPDX-License-Identifier: Apache-2.0
#include "worker/job/job_runtime.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/plan/checked_job.h"
#include "core/plan/job_layout.h"
#include "core/redaction.h"
#include "core/status.h"
#include "worker/cache/sample_forms.h"
#include "worker/job/row_partner.h"
#include "worker/job/staged_rows.h"
#include "worker/source/faults/fault_rules.h"

namespace leat::worker {
namespace {

bool DependsOnSteps(const JobSpec& spec) {
  for (size_t i = 0; i < NumSources(spec); ++i)
    if (DrawsForSteps(PipelineOf(spec, i))) return true;
  return false;
}

// Digests everything that a row depends on except its RowKey. Jobs that cut the
// same samples into other batches, in another order, or in other shares, have
// the same rows, unless these depend on their steps.
Digest SharingKeyOf(const JobInfo& job, Epilogue epilogue,
                    bool depends_on_step) {
  Sha256 hash;
  hash.UpdateField("leat.shared-rows.1");
  for (size_t i = 0; i < job.datasets.size(); ++i) {
    hash.UpdateField(CanonicalText(PipelineOf(job.spec, i)));
    hash.Update(std::as_bytes(std::span(job.datasets[i].fingerprint)));
  }
  hash.UpdateU64(AugmentSeed(job.spec));
  hash.UpdateU64(static_cast<uint64_t>(job.spec.decoder_class));
  hash.UpdateU64(static_cast<uint64_t>(epilogue));
  hash.UpdateU64(HasValidField(job.spec));
  hash.UpdateU64(job.spec.source_field.empty());
  if (depends_on_step) hash.Update(std::as_bytes(std::span(job.plan_hash)));
  return hash.Finish();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const JobRuntime>> JobRuntime::Create(
    JobInfo job, std::vector<std::shared_ptr<const Source>> sources,
    const RuntimeContext* context, Epilogue epilogue) {
  ASSIGN_OR_RETURN(CheckedJob checked, CheckJob(job.spec, job.datasets));
  RETURN_IF_ERROR(CheckAgainst(job.spec, job.datasets));
  if (checked.schema != job.schema)
    return FailedPrecondition(
        "job {}: its schema is not that of its pipeline: the coordinator is of "
        "another version",
        job.spec.name);
  if (PlanHash(job.spec, job.datasets) != job.plan_hash)
    return FailedPrecondition("job {}: its plan hash is not that of its spec",
                              job.spec.name);
  auto kept = std::make_unique<const JobInfo>(std::move(job));
  const std::vector<uint64_t> first = FirstSamples(kept->datasets);
  JobKernels kernels(context, kept->spec.decoder_class, epilogue);
  Sources opened;
  for (uint32_t i = 0; i < sources.size(); ++i) {
    ASSIGN_OR_RETURN(
        std::unique_ptr<const SourceRuntime> source,
        SourceRuntime::Create(*kept, i, first[i], std::move(checked.sources[i]),
                              std::move(sources[i]), context, &kernels));
    opened.push_back(std::move(source));
  }
  return std::shared_ptr<const JobRuntime>(new JobRuntime(
      std::move(kept), std::move(opened), kernels, context, epilogue));
}

// A group's kernel writes no number of a source: a job with such a field
// computes its rows one by one.
JobRuntime::JobRuntime(std::unique_ptr<const JobInfo> job, Sources sources,
                       const JobKernels& kernels, const RuntimeContext* context,
                       Epilogue epilogue)
    : job_(std::move(job)),
      sources_(std::move(sources)),
      kernel_(job_->spec.source_field.empty() ? kernels.only() : nullptr),
      context_(context),
      plan_(job_->spec, job_->datasets),
      rule_(
          job_.get(), &plan_,
          [this](uint64_t sample) {
            return SourceOf(sample).records().source().Describe(sample);
          },
          context->bad_samples),
      own_fields_(job_->schema.fields.size() - kernels.field_bytes().size()),
      has_valid_field_(HasValidField(job_->spec)),
      has_partners_(Any(&SourceRuntime::has_partners)),
      reads_ahead_(Any(&SourceRuntime::reads_ahead)),
      depends_on_step_(has_partners_ || DependsOnSteps(job_->spec)),
      sharing_key_(SharingKeyOf(*job_, epilogue, depends_on_step_)),
      field_bytes_(kernels.field_bytes()) {
  for (size_t i = field_bytes_.size(); i < job_->schema.fields.size(); ++i)
    field_bytes_.push_back(job_->schema.fields[i].row_bytes);
}

bool JobRuntime::Any(bool (SourceRuntime::*is)() const) const {
  return std::ranges::any_of(
      sources_, [is](const auto& source) { return ((*source).*is)(); });
}

std::shared_ptr<const void> JobRuntime::BeginUse() const {
  auto uses = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  for (const auto& source : sources_)
    uses->push_back(context_->cache->BeginUse(source->records().in_memory()));
  return uses;
}

std::shared_ptr<const JobRuntime::Reading> JobRuntime::BeginReading(
    const IteratorEnd& end) const {
  const auto rows = static_cast<double>(end.rows);
  const auto batch = static_cast<double>(job_->spec.batch);
  auto reading = std::make_shared<Reading>();
  // If rows are dealt out in shares, an epoch says nothing about how often a
  // record is read; and the only epoch of a stream has no end.
  const bool by_epoch = !HasShareLayout(job_->spec) &&
                        job_->spec.last_batch != LastBatch::kStream;
  const uint64_t end_epoch = by_epoch ? end.end_epoch : 0;
  for (const auto& source : sources_)
    reading->of_sources_.push_back(std::make_unique<FormHorizon::Reading>(
        SampleCache::HorizonOf(source->records().in_memory()),
        FormHorizon::Iterator{
            .job = job_->plan_hash,
            .share = end.rows == 0 ? 1.0 : std::min(1.0, rows / batch),
            .end_epoch = end_epoch,
            .steps_per_epoch = plan_.steps_per_epoch()}));
  return reading;
}

RowKey JobRuntime::KeyOf(const RowOf& row) const {
  RowKey key{.epoch = PassOf(row),
             .sample = row.sample,
             .padding = has_valid_field_ && IsPadding(row)};
  if (depends_on_step_) {
    // Steps of two epochs may be of one pass.
    key.epoch = row.epoch;
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
  RowRecords records;
  const auto read = [&](uint64_t sample) {
    records.push_back(
        {.sample = sample,
         .stored = SourceOf(sample).records().Read({.sample = sample})});
  };
  read(row.sample);
  if (!has_partners_) return records;
  const uint64_t partner = PartnerOf(row).sample;
  if (partner != row.sample) read(partner);
  return records;
}

std::vector<RowRecords> JobRuntime::ReadTogether(
    std::span<const RowOf> rows) const {
  return SourceOf(rows[0].sample).records().ReadTogether(rows);
}

size_t JobRuntime::CountTogether(std::span<const uint64_t> samples) const {
  // Partners may be anywhere.
  if (has_partners_) return 1;
  const SourceRuntime& first = SourceOf(samples[0]);
  size_t of_first = 1;  // they follow each other
  while (of_first < samples.size() && &SourceOf(samples[of_first]) == &first)
    ++of_first;
  return first.records().CountTogether(samples.first(of_first));
}

std::unique_ptr<GroupStage> JobRuntime::BeginGroup(
    const GroupOutputs& outputs) const {
  std::unique_ptr<KernelGroup> group =
      kernel_ == nullptr ? nullptr : kernel_->BeginGroup(outputs);
  if (group == nullptr) return nullptr;
  return StageRows(shared_from_this(), outputs.rows, std::move(group));
}

absl::Status JobRuntime::Try(
    const RowOf& row, RowPartner* partner, ThreadState* state,
    std::span<const std::span<std::byte>> outputs) const {
  const SourceRuntime& source = SourceOf(row.sample);
  ASSIGN_OR_RETURN(const StoredSample stored,
                   source.records().Read({.sample = row.sample,
                                          .supplied = row.supplied,
                                          .read_ahead = row.records}));
  SampleForms forms = source.records().FormsOf(row.sample, row.epoch, stored);
  RowInput input = source.InputOf(row, PassOf(row), row.sample);
  input.fields = stored.fields;
  input.partner = partner;
  input.forms = &forms;
  absl::Status status = source.kernel().Run(input, state, outputs);
  return partner->failed() ? Judged(std::move(status))
                           : source.records().OfRecord(row.sample, status);
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
  const auto images = outputs.first(outputs.size() - own_fields_);
  RowPartner partner(*this, row);
  const absl::Status status = Try(row, &partner, state, images);
  bool valid = status.ok();
  if (!valid) {
    if (!IsBad(status, row.absent)) return status;
    RETURN_IF_ERROR(AfterBadSample(row, status, &partner, state, images));
    valid = rule_.policy() != BadSamplePolicy::kZero;
  }
  SetOwnFields(row, valid, outputs);
  return absl::OkStatus();
}

void JobRuntime::SetOwnFields(
    const RowOf& row, bool valid,
    std::span<const std::span<std::byte>> outputs) const {
  if (has_valid_field_) outputs.back()[0] = std::byte{valid && !IsPadding(row)};
  if (job_->spec.source_field.empty()) return;
  const auto number = static_cast<int32_t>(plan_.SourceOf(row.sample));
  std::memcpy(outputs[outputs.size() - own_fields_].data(), &number,
              sizeof(number));
}

absl::Status JobRuntime::CheckRequest(const RowRequest& request) const {
  if (request.rows.size() != request.samples.size())
    return InvalidArgument("request {}: {} rows and {} samples",
                           request.request_id, request.rows.size(),
                           request.samples.size());
  const size_t supplied = sources_[0]->supplied() ? request.rows.size() : 0;
  if (request.supplied.size() != supplied)
    return InvalidArgument(
        "request {}: {} samples supplied with it, want {}: the job reads {}",
        request.request_id, request.supplied.size(), supplied,
        Redacted(job_->datasets[0].reader));
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
