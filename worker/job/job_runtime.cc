// SPDX-License-Identifier: Apache-2.0
#include "worker/job/job_runtime.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/cluster/blame.h"
#include "core/log.h"
#include "core/observe/stages.h"
#include "core/redaction.h"
#include "core/shapes/stored_type.h"
#include "core/status.h"
#include "worker/cache/sample_forms.h"
#include "worker/job/row_partner.h"
#include "worker/source/faults/blame_rules.h"

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

// Returns null if the dataset has none that can be used, which changes no row.
std::shared_ptr<const SeekFile> OpenSeekFile(const JobInfo& job,
                                             const Node& reader,
                                             const FormCodec& codec,
                                             const AllowedReads* allowed) {
  if (codec.parse == nullptr) return nullptr;
  const std::string path =
      SeekFilePath(reader, job.dataset.fingerprint, allowed);
  if (path.empty()) return nullptr;
  absl::StatusOr<std::shared_ptr<const SeekFile>> file =
      SeekFile::Open(path, job.dataset.fingerprint, codec, allowed);
  if (file.ok()) {
    LOG_INFO("seek_index.opened job={} path=\"{}\" records={}", job.spec.name,
             path, (*file)->records());
    return *std::move(file);
  }
  if (!absl::IsNotFound(file.status()))
    LOG_WARN("seek_index.refused job={} error=\"{}\"", job.spec.name,
             Message(file.status()));
  return nullptr;
}

bool HasPartners(const JobSpec& spec) {
  return std::ranges::any_of(spec.pipeline.nodes, [](const Node& node) {
    return node.op == "partner";
  });
}

// Of what a row depends on, all but its RowKey. Jobs that cut the same samples
// into other batches, in another order, have the same rows, unless these depend
// on their steps.
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

Digest DatasetKeyOf(const Digest& fingerprint, const Node& reader) {
  return Sha256()
      .Update(std::as_bytes(std::span(fingerprint)))
      .UpdateField(CanonicalText(reader))
      .Finish();
}

bool IsBad(const absl::Status& status, std::span<const uint64_t> absent) {
  const std::optional<Blame> blame = BlameOf(status);
  if (blame == Blame::kSample) return true;
  const std::optional<uint64_t> sample = SampleOf(status);
  return blame == Blame::kObject && sample.has_value() &&
         std::ranges::find(absent, *sample) != absent.end();
}

absl::StatusOr<std::shared_ptr<const JobRuntime>> JobRuntime::Create(
    JobInfo job, std::shared_ptr<const Source> source,
    const RuntimeContext* context, Finish finish) {
  ASSIGN_OR_RETURN(CheckedGraph graph, CheckSpec(job.spec, job.dataset.types));
  RETURN_IF_ERROR(CheckAgainst(job.spec, job.dataset));
  RETURN_IF_ERROR(CheckSchema(job, graph));
  if (PlanHash(job.spec, job.dataset) != job.plan_hash)
    return FailedPrecondition("job {}: its plan hash is not that of its spec",
                              job.spec.name);
  if (source->num_samples() != job.dataset.shards.num_samples())
    return FailedPrecondition(
        "job {}: its index has {} samples, its dataset {}", job.spec.name,
        source->num_samples(), job.dataset.shards.num_samples());
  std::vector<ValueType> types = graph.types[graph.reader];
  const bool brought = IsExternal(job.spec);
  const bool reads_ahead =
      !brought && (context->read_ahead_of == ReadAheadOf::kAll ||
                   ReadsWait(graph.graph.nodes[graph.reader], *source));
  const Node& reader = graph.graph.nodes[graph.reader];
  const Digest key = DatasetKeyOf(job.dataset.fingerprint, reader);
  SampleCache::DatasetPtr kept = context->cache->Open(
      key, job.dataset.id, job.dataset.name, RecordsOf(*source));
  std::string root = RootOf(reader);
  DiskForms::DatasetPtr on_disk =
      context->disk == nullptr || brought
          ? nullptr
          : context->disk->Open(key, job.dataset.name, root, job.dataset.id);
  std::shared_ptr<const SeekFile> seek_file =
      OpenSeekFile(job, reader, context->seek_indexes, context->allowed);
  std::unique_ptr<PeerRecords> peers;
  if (context->asker != nullptr && !brought)
    peers = std::make_unique<PeerRecords>(
        PeerRecordsOptions{.asker = context->asker,
                           .ownership = context->ownership,
                           .codec = context->forms,
                           .kinds = context->cache->form_kinds(),
                           .dataset_id = job.dataset.id,
                           .dataset = key,
                           .types = types,
                           .kept = kept},
        context->cache->clock());
  if (finish == Finish::kDevice) graph = SplitFinish(graph).head;
  absl::StatusOr<std::unique_ptr<RowKernel>> kernel =
      context->kernels.compile(graph, job.spec.seed, job.spec.decoder_class);
  if (!kernel.ok())
    return Annotate(kernel.status(), fmt::format("job {}", job.spec.name));
  return std::shared_ptr<const JobRuntime>(new JobRuntime(
      std::move(job), key, finish, std::move(source), std::move(kept),
      std::move(on_disk), std::move(seek_file), std::move(peers),
      std::move(root), context, graph.schema, std::move(types), brought,
      *std::move(kernel), reads_ahead));
}

JobRuntime::JobRuntime(JobInfo job, const Digest& key, Finish finish,
                       std::shared_ptr<const Source> source,
                       SampleCache::DatasetPtr kept,
                       DiskForms::DatasetPtr on_disk,
                       std::shared_ptr<const SeekFile> seek_file,
                       std::unique_ptr<PeerRecords> peers, std::string root,
                       const RuntimeContext* context, const BatchSchema& rows,
                       std::vector<ValueType> types, bool brought,
                       std::unique_ptr<RowKernel> kernel, bool reads_ahead)
    : job_(std::move(job)),
      dataset_key_(key),
      source_(std::move(source)),
      kept_(std::move(kept)),
      on_disk_(std::move(on_disk)),
      seek_file_(std::move(seek_file)),
      peers_(std::move(peers)),
      dataset_{std::move(root), job_.dataset.fingerprint},
      context_(context),
      kernel_(std::move(kernel)),
      plan_(job_.spec, job_.dataset.shards),
      has_valid_field_(HasValidField(job_.spec)),
      has_partners_(HasPartners(job_.spec)),
      depends_on_step_(has_partners_ || DrawsForSteps(job_.spec.pipeline)),
      sharing_key_(SharingKeyOf(job_, finish, depends_on_step_)),
      reads_ahead_(reads_ahead),
      types_(std::move(types)),
      brought_(brought) {
  for (const Field& field : rows.fields)
    field_bytes_.push_back(field.row_bytes);
  if (has_valid_field_) field_bytes_.push_back(1);
}

std::shared_ptr<const void> JobRuntime::BeginUse() const {
  return context_->cache->BeginUse(kept_);
}

std::unique_ptr<FormHorizon::Reading> JobRuntime::BeginReading(
    const IteratorEnd& end) const {
  const auto rows = static_cast<double>(end.rows);
  const auto batch = static_cast<double>(job_.spec.batch);
  return std::make_unique<FormHorizon::Reading>(
      SampleCache::HorizonOf(kept_),
      FormHorizon::Iterator{
          .job = job_.plan_hash,
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

absl::Status JobRuntime::OfRecord(uint64_t sample,
                                  const absl::Status& status) const {
  if (status.ok()) return status;
  return Judged(Annotate(status, source_->Describe(sample)));
}

absl::Status JobRuntime::Exhausted(uint64_t sample,
                                   const absl::Status& reason) {
  return Final(
      Annotate(reason, fmt::format("sample {}, and its {} substitutes too",
                                   sample, kMaxSubstitutes)));
}

absl::Status JobRuntime::Final(const absl::Status& status) {
  return WithBlame(status, Blame::kSample);
}

absl::Status JobRuntime::Try(
    const RowOf& row, RowPartner* partner, ThreadState* state,
    std::span<const std::span<std::byte>> outputs) const {
  ASSIGN_OR_RETURN(const StoredSample stored,
                   Stored(row.sample, row.brought, row.records));
  SampleForms forms = FormsOf(row.sample, row.epoch, stored);
  absl::Status status = kernel_->Run({.epoch = PassOf(row),
                                      .sample = row.sample,
                                      .fields = stored.fields,
                                      .step = row.step,
                                      .step_epoch = row.epoch,
                                      .partner = partner,
                                      .forms = &forms},
                                     state, outputs);
  return partner->failed() ? Judged(std::move(status))
                           : OfRecord(row.sample, status);
}

void JobRuntime::Report(uint64_t sample, const absl::Status& reason) const {
  if (job_.spec.on_bad_sample != BadSamplePolicy::kFail)
    context_->bad_samples->Count(job_.plan_hash, sample);
  context_->bad_samples->Add(job_.spec.name, sample, source_->Describe(sample),
                             Message(reason));
}

absl::Status JobRuntime::Replace(
    RowOf row, const absl::Status& reason, RowPartner* partner,
    ThreadState* state, std::span<const std::span<std::byte>> outputs) const {
  const uint64_t sample = row.sample;
  for (uint32_t attempt = 0; attempt < kMaxSubstitutes; ++attempt) {
    row.sample = plan_.Substitute(PassOf(row), sample, attempt);
    absl::Status status = Try(row, partner, state, outputs);
    if (!IsBad(status, row.absent)) return status;
    if (partner->bad()) return Final(status);
    Report(row.sample, status);
  }
  return Exhausted(sample, reason);
}

absl::Status JobRuntime::Compute(
    const RowOf& row, ThreadState* state,
    std::span<const std::span<std::byte>> outputs) const {
  const auto images = outputs.first(outputs.size() - has_valid_field_);
  RowPartner partner(*this, row);
  absl::Status status = Try(row, &partner, state, images);
  bool valid = status.ok();
  if (!valid && !IsBad(status, row.absent)) return status;
  if (!valid) {
    if (row.bad != nullptr) *row.bad = true;
    if (!partner.bad()) Report(row.sample, status);
    switch (job_.spec.on_bad_sample) {
      case BadSamplePolicy::kFail:
        return Final(Annotate(status, fmt::format("sample {}", row.sample)));
      case BadSamplePolicy::kReplace:
        if (partner.bad()) return Final(status);
        RETURN_IF_ERROR(Replace(row, status, &partner, state, images));
        valid = true;
        break;
      case BadSamplePolicy::kZero:
        for (const std::span<std::byte> output : images)
          std::memset(output.data(), 0, output.size());
    }
  }
  if (has_valid_field_) outputs.back()[0] = std::byte{valid && !IsPadding(row)};
  return absl::OkStatus();
}

absl::Status JobRuntime::CheckAsk(const RowAsk& ask) const {
  if (ask.rows.size() != ask.samples.size())
    return InvalidArgument("ask {}: {} rows and {} samples", ask.ask_id,
                           ask.rows.size(), ask.samples.size());
  const size_t brought = brought_ ? ask.rows.size() : 0;
  if (ask.brought.size() != brought)
    return InvalidArgument(
        "ask {}: {} samples brought with it, want {}: the job reads {}",
        ask.ask_id, ask.brought.size(), brought, Redacted(job_.dataset.reader));
  if (ask.absent.size() > kMaxAbsent)
    return InvalidArgument("ask {}: {} absent samples, want up to {}",
                           ask.ask_id, ask.absent.size(), kMaxAbsent);
  for (const uint64_t sample : ask.absent)
    if (sample >= plan_.num_samples())
      return InvalidArgument("ask {}: absent sample {}: want less than {}",
                             ask.ask_id, sample, plan_.num_samples());
  for (const uint64_t sample : ask.samples)
    if (sample >= plan_.num_samples())
      return InvalidArgument("ask {}: sample {}: want less than {}", ask.ask_id,
                             sample, plan_.num_samples());
  for (const uint32_t row : ask.rows)
    if (row >= plan_.batch())
      return InvalidArgument("ask {}: row {}: want less than {}", ask.ask_id,
                             row, plan_.batch());
  RETURN_IF_ERROR(
      Annotate(plan_.CheckEpoch(ask.epoch), fmt::format("ask {}", ask.ask_id)));
  if (ask.rows.size() <= 1) return absl::OkStatus();
  if (ask.step >= plan_.steps_per_epoch())
    return InvalidArgument("ask {}: step {}: want less than {}", ask.ask_id,
                           ask.step, plan_.steps_per_epoch());
  std::vector<uint64_t> expected(ask.rows.size());
  plan_.Samples(ask.epoch, ask.step, ask.rows, expected);
  const auto [theirs, ours] =
      std::mismatch(ask.samples.begin(), ask.samples.end(), expected.begin());
  if (theirs == ask.samples.end()) return absl::OkStatus();
  return InvalidArgument(
      "ask {}: epoch {} step {} row {}: sample {}, but the plan says {}",
      ask.ask_id, ask.epoch, ask.step,
      ask.rows[static_cast<size_t>(theirs - ask.samples.begin())], *theirs,
      *ours);
}

}  // namespace leat::worker
