// SPDX-License-Identifier: Apache-2.0
#include "worker/serving/explainer.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "core/plan/checked_job.h"
#include "core/plan/selection.h"
#include "core/plan/source_names.h"
#include "core/status.h"

namespace leat::worker {
namespace {

absl::Status CheckCount(const char* what, int count, int most) {
  if (count >= 1 && count <= most) return absl::OkStatus();
  return InvalidArgument("{} {}: want 1 to {}", count, what, most);
}

absl::Status CheckDocuments(int records, uint64_t documents) {
  const uint64_t most = kMaxExplainedDocuments / static_cast<uint64_t>(records);
  if (documents <= most) return absl::OkStatus();
  return InvalidArgument("{} documents of each of {} rows: want at most {}",
                         documents, records, most);
}

// Cuts a path below its root. A path outside the root, as for a reader that is
// given a single file, is cut before its last part.
template <class Record>
void SetPath(std::string_view path, std::string_view root, Record* record) {
  size_t cut = root.size();
  if (!path.starts_with(root) || path.size() <= cut + 1 || path[cut] != '/')
    cut = path.rfind('/');
  if (cut == std::string_view::npos) {
    record->set_root(".");
    record->set_file(std::string(path));
    return;
  }
  record->set_root(cut == 0 ? "/" : std::string(path.substr(0, cut)));
  record->set_file(std::string(path.substr(cut + 1)));
}

// `record`: a StoredRecord or a RowDocument.
template <class Record>
void SetPlace(const RecordPlace& place, std::string_view root, Record* record) {
  SetPath(place.file, root, record);
  record->set_key(place.key);
  if (place.offset) record->set_offset(*place.offset);
  if (place.bytes) record->set_size(*place.bytes);
  if (place.index) record->set_index(*place.index);
}

void SetDocument(const RowDocument& document, std::string_view root,
                 v1::RowDocument* proto) {
  proto->set_document(document.sample);
  SetPlace(document.place, root, proto);
  proto->set_begin(document.begin);
  proto->set_elements(document.elements);
  proto->set_row_begin(document.row_begin);
  proto->set_document_elements(document.document_elements);
}

}  // namespace

absl::StatusOr<Explainer> Explainer::Create(
    std::shared_ptr<const JobRuntime> job, const ImageLimits& limits) {
  const JobInfo& info = job->job();
  if (IsExternal(info.spec))
    return FailedPrecondition(
        "job {}: its samples are in no storage; its consumers supply them",
        info.spec.name);
  ASSIGN_OR_RETURN(CheckedJob checked, CheckJob(info.spec, info.datasets));
  Explainer explainer(std::move(job), std::move(checked), limits);
  RETURN_IF_ERROR(explainer.SourceOf(0).status());
  return explainer;
}

Explainer::Explainer(std::shared_ptr<const JobRuntime> job, CheckedJob checked,
                     const ImageLimits& limits)
    : job_(std::move(job)),
      checked_(std::move(checked)),
      scratch_(std::make_unique<Scratch>(limits)) {}

absl::StatusOr<const Explainer::OfSource*> Explainer::SourceOf(
    uint64_t sample) {
  const uint32_t number = job_->plan().SourceOf(sample);
  const auto known = sources_.find(number);
  if (known != sources_.end()) return &known->second;
  OfSource source{.graph = checked_.sources[number]};
  ASSIGN_OR_RETURN(source.program, RowProgram::Compile(source.graph));
  source.root = RootOf(source.graph.graph.nodes[source.graph.reader]);
  return &sources_.emplace(number, std::move(source)).first->second;
}

std::string Explainer::OfSource::NameOfNode(uint32_t node) const {
  for (const auto& [name, ref] : graph.graph.outputs)
    if (ref.node == node) return name;
  for (const Node& user : graph.graph.nodes)
    for (const auto& [name, value] : user.args)
      if (const auto* ref = std::get_if<NodeRef>(&value);
          ref != nullptr && ref->node == node)
        return fmt::format("{}.{}", user.op, name);
  return "";
}

absl::Status Explainer::LocateOne(uint64_t sample,
                                  const ListedDocuments& documents,
                                  v1::StoredRecord* record) {
  const SourceRuntime& runtime = job_->SourceOf(sample);
  ASSIGN_OR_RETURN(const OfSource* const source, SourceOf(sample));
  const Source& stored = runtime.records().source();
  ASSIGN_OR_RETURN(const RecordPlace place, stored.Locate(sample));
  record->set_sample(sample);
  record->set_source(std::string(SourceNameOf(job_->job(), sample)));
  SetPlace(place, source->root, record);
  ASSIGN_OR_RETURN(const std::optional<RowDocuments> row,
                   stored.DocumentsOf(sample, documents.first, documents.most));
  if (row) {
    v1::RowDocuments& proto = *record->mutable_documents();
    proto.set_count(row->count);
    proto.set_first(std::min(documents.first, row->count));
    for (const RowDocument& document : row->listed)
      SetDocument(document, source->root, proto.add_listed());
  }
  const ShardTable& shards = runtime.dataset().shards;
  const uint64_t own = sample - runtime.first_sample();
  record->set_class_name(
      std::string(GroupNameOf(runtime.dataset().groups, own)));
  const uint32_t shard = shards.ShardOf(own);
  record->set_shard(shard);
  record->set_index_in_shard(own - shards.range(shard).begin);
  return absl::OkStatus();
}

absl::Status Explainer::Locate(const v1::LocateSamplesRequest& request,
                               const Cancelled& cancelled,
                               v1::LocateSamplesResponse* response) {
  RETURN_IF_ERROR(CheckCount("samples", request.samples_size(), kMaxExplained));
  RETURN_IF_ERROR(CheckDocuments(request.samples_size(), request.documents()));
  const ListedDocuments documents{request.first_document(),
                                  request.documents()};
  const uint64_t count = job_->plan().num_samples();
  for (const uint64_t sample : request.samples()) {
    if (sample >= count)
      return OutOfRange("sample {}: the dataset has {} samples", sample, count);
    if (cancelled()) return ::leat::Cancelled("the caller is gone");
    RETURN_IF_ERROR(LocateOne(sample, documents, response->add_records()));
  }
  return absl::OkStatus();
}

absl::Status Explainer::CheckRows(const v1::ExplainRowsRequest& request) const {
  const Plan& plan = job_->plan();
  RETURN_IF_ERROR(
      CheckCount("rows", request.rows_size(),
                 request.read_records() ? kMaxExplainedRead : kMaxExplained));
  RETURN_IF_ERROR(CheckDocuments(request.rows_size(), request.documents()));
  if (request.step() >= plan.steps_per_epoch())
    return OutOfRange("step {}: job \"{}\" has {} steps an epoch",
                      request.step(), job_->job().spec.name,
                      plan.steps_per_epoch());
  RETURN_IF_ERROR(Annotate(plan.CheckEpoch(request.epoch()),
                           fmt::format("job \"{}\"", job_->job().spec.name)));
  for (const uint32_t row : request.rows())
    if (row >= plan.batch())
      return OutOfRange("row {}: the batch has {} rows", row, plan.batch());
  return absl::OkStatus();
}

absl::Status Explainer::Explain(const v1::ExplainRowsRequest& request,
                                const Cancelled& cancelled,
                                v1::ExplainRowsResponse* response) {
  RETURN_IF_ERROR(CheckRows(request));
  for (const uint32_t row : request.rows()) {
    if (cancelled()) return ::leat::Cancelled("the caller is gone");
    RETURN_IF_ERROR(ExplainOne(request, row, response->add_rows()));
  }
  return absl::OkStatus();
}

absl::Status Explainer::ExplainOne(const v1::ExplainRowsRequest& request,
                                   uint32_t row, v1::ExplainedRow* explained) {
  const Plan& plan = job_->plan();
  const uint64_t epoch = request.epoch(), step = request.step();
  explained->set_row(row);
  uint64_t sample = 0;
  plan.Samples(epoch, step, std::span(&row, 1), std::span(&sample, 1));
  if (sample == kNoSample) return absl::OkStatus();
  RETURN_IF_ERROR(LocateOne(sample, {.first = 0, .most = request.documents()},
                            explained->mutable_record()));
  explained->set_padding(plan.IsPadding(epoch, step, row));
  explained->set_pass(plan.PassOf(epoch, step, row));
  if (job_->SourceOf(sample).has_partners()) {
    const uint32_t partner = plan.PartnerOf(epoch, step, row);
    uint64_t of = 0;
    plan.Samples(epoch, step, std::span(&partner, 1), std::span(&of, 1));
    explained->set_partner_row(partner);
    RETURN_IF_ERROR(LocateOne(of, {}, explained->mutable_partner()));
  }
  return AddDraws(request, sample, explained);
}

absl::Status Explainer::AddDraws(const v1::ExplainRowsRequest& request,
                                 uint64_t sample, v1::ExplainedRow* explained) {
  const SourceRuntime& runtime = job_->SourceOf(sample);
  ASSIGN_OR_RETURN(const OfSource* const source, SourceOf(sample));
  absl::StatusOr<StoredSample> stored = StoredSample();
  const bool read =
      request.read_records() && source->program->draws_need_fields();
  if (read) stored = runtime.records().Read({.sample = sample});
  RowInput input =
      runtime.InputOf({.epoch = request.epoch(), .step = request.step()},
                      explained->pass(), sample);
  if (stored.ok()) input.fields = stored->fields;
  for (const NodeDraw& draw : source->program->Draws(input, *scratch_)) {
    v1::Draw& proto = *explained->add_draws();
    proto.set_node(draw.node);
    proto.set_op(source->graph.graph.nodes[draw.node].op);
    proto.set_name(source->NameOfNode(draw.node));
    proto.mutable_values()->Add(draw.values.begin(), draw.values.end());
    proto.set_text(draw.text);
    proto.set_unknown(stored.ok() || draw.unknown.empty()
                          ? draw.unknown
                          : std::string(Message(stored.status())));
  }
  return absl::OkStatus();
}

}  // namespace leat::worker
