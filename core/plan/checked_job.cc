// SPDX-License-Identifier: Apache-2.0
#include "core/plan/checked_job.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/pipeline/device_forms.h"
#include "core/pipeline/shape_inference.h"
#include "core/plan/enum_names.h"
#include "core/plan/job_layout.h"
#include "core/plan/share_schedule.h"
#include "core/status.h"

namespace leat {
namespace {

constexpr size_t kMaxJobNameLength = 128;

bool IsNameCharacter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

// `what`: "job name".
absl::Status CheckName(std::string_view what, std::string_view name) {
  if (name.empty())
    return InvalidArgument("{} \"\": want 1 to {} of A-Z a-z 0-9 . _ -", what,
                           kMaxJobNameLength);
  if (name.size() > kMaxJobNameLength)
    return InvalidArgument("{} \"{}...\" of {} characters: want at most {}",
                           what, std::string(name.substr(0, 32)), name.size(),
                           kMaxJobNameLength);
  const auto bad = std::find_if_not(name.begin(), name.end(), IsNameCharacter);
  if (bad != name.end())
    return InvalidArgument(
        "{} \"{}\" has character {} at {}: want only A-Z a-z 0-9 . _ -", what,
        name, static_cast<int>(static_cast<uint8_t>(*bad)), bad - name.begin());
  return absl::OkStatus();
}

absl::Status CheckMaxBad(const JobSpec& spec) {
  if (!spec.max_bad) return absl::OkStatus();
  const double max_bad = *spec.max_bad;
  if (!(max_bad >= 0 && max_bad <= 1))
    return InvalidArgument(
        "max_bad {}: want 0 to 1, a share of the dataset's samples", max_bad);
  if (spec.on_bad_sample == BadSamplePolicy::kFail)
    return InvalidArgument(
        "max_bad {}: on_bad_sample fail ends at the first bad sample; want "
        "replace or zero with max_bad",
        max_bad);
  if (IsExternal(spec))
    return InvalidArgument(
        "max_bad {}: the samples of {} are no dataset that has a share; want "
        "none",
        max_bad, kExternalReader);
  return absl::OkStatus();
}

absl::Status CheckParts(const JobSpec& spec) {
  if (spec.num_parts > 0 && spec.batch % spec.num_parts != 0)
    return InvalidArgument(
        "num_parts {}: want a divisor of the batch, which is {}",
        spec.num_parts, spec.batch);
  if (spec.rotate_parts && spec.num_parts == 0)
    return InvalidArgument("rotate_parts: want num_parts with it");
  if (spec.mix_parts && spec.num_parts == 0)
    return InvalidArgument("mix_parts: want num_parts with it");
  if (spec.mix_parts && spec.order == Order::kSequential)
    return InvalidArgument("mix_parts: want order global or shard with it");
  return absl::OkStatus();
}

absl::Status CheckOptions(const JobSpec& spec) {
  using namespace enum_names;
  RETURN_IF_ERROR(CheckName("job name", spec.name));
  if (spec.batch == 0 || spec.batch > kMaxBatch)
    return InvalidArgument("batch {}: want 1 to {}", spec.batch, kMaxBatch);
  RETURN_IF_ERROR(CheckEnum("order", kOrders, spec.order));
  RETURN_IF_ERROR(CheckEnum("last_batch", kLastBatches, spec.last_batch));
  RETURN_IF_ERROR(
      CheckEnum("decoder_class", kDecoderClasses, spec.decoder_class));
  RETURN_IF_ERROR(CheckEnum("on_bad_sample", kPolicies, spec.on_bad_sample));
  RETURN_IF_ERROR(CheckParts(spec));
  if (spec.order == Order::kShardShuffle &&
      (spec.shuffle_window == 0 || spec.shuffle_window > kMaxShards))
    return InvalidArgument("shuffle_window {}: want 1 to {} shards",
                           spec.shuffle_window, kMaxShards);
  return CheckMaxBad(spec);
}

// Checks selections as far as they need no pipeline and no dataset.
absl::Status CheckSelections(const JobSpec& spec) {
  if (IsMixture(spec) && IsSet(spec.selection))
    return InvalidArgument(
        "selection: want none beside sources, which have their own");
  for (size_t i = 0; i < NumSources(spec); ++i) {
    const Selection& selection = SelectionOf(spec, i);
    const absl::Status status = CheckSelection(selection);
    if (!status.ok() && IsMixture(spec))
      return Annotate(status,
                      fmt::format("source \"{}\"", spec.sources[i].name));
    RETURN_IF_ERROR(status);
    if (IsSet(selection) && IsExternal(spec))
      return InvalidArgument(
          "selection \"{}\": the samples of {} are brought by consumers; want "
          "none",
          ShownText(selection), kExternalReader);
  }
  if (IsMixture(spec) || !HasGroupShares(spec.selection))
    return absl::OkStatus();
  if (spec.num_parts > 0)
    return InvalidArgument(
        "num_parts {}: want 0 with weights of classes, as each part has other "
        "classes",
        spec.num_parts);
  if (spec.last_batch != LastBatch::kDrop &&
      spec.last_batch != LastBatch::kStream)
    return InvalidArgument(
        "last_batch {}: want drop or stream with weights of classes, as no "
        "epoch ends with a pass over them",
        Name(spec.last_batch));
  return absl::OkStatus();
}

// Checks the parts of a mixture that its pipelines have nothing to do with.
absl::Status CheckMixture(const JobSpec& spec) {
  const size_t count = spec.sources.size();
  if (count < 2 || count > kMaxSources)
    return InvalidArgument("{} source{}: want 2 to {}, or one pipeline", count,
                           count == 1 ? "" : "s", kMaxSources);
  if (!spec.pipeline.nodes.empty() || !spec.pipeline.outputs.empty())
    return InvalidArgument("pipeline: want none beside {} sources", count);
  std::set<std::string_view> names;
  for (const MixedSource& source : spec.sources) {
    RETURN_IF_ERROR(CheckName("source name", source.name));
    if (!names.insert(source.name).second)
      return InvalidArgument("source name \"{}\" is there twice", source.name);
  }
  RETURN_IF_ERROR(
      enum_names::CheckEnum("mix_end", enum_names::kMixEnds, spec.mix_end));
  const bool endless = spec.mix_end == MixEnd::kStream;
  if (spec.last_batch != (endless ? LastBatch::kStream : LastBatch::kDrop))
    return InvalidArgument(
        "last_batch {}: want {} in a mixture whose mix_end is {}",
        Name(spec.last_batch), endless ? "stream" : "drop", Name(spec.mix_end));
  if (spec.num_parts > 0)
    return InvalidArgument("num_parts {}: want 0 in a mixture", spec.num_parts);
  return ScheduleOf(spec).status();
}

absl::Status CheckNoMixture(const JobSpec& spec) {
  if (!spec.shares.empty())
    return InvalidArgument("shares: want them in a mixture only");
  if (spec.mix_end != MixEnd::kStream)
    return InvalidArgument("mix_end {}: want it in a mixture only",
                           Name(spec.mix_end));
  if (!spec.source_field.empty())
    return InvalidArgument("source_field \"{}\": want it in a mixture only",
                           spec.source_field);
  return absl::OkStatus();
}

// Checks that the samples can be in groups.
absl::Status CheckGroupReader(const CheckedGraph& graph) {
  if (graph.stored != graph.reader)
    return InvalidArgument(
        "{}: rows that are packed of several samples are in no group: want no "
        "weights with it",
        graph.graph.nodes[graph.stored].op);
  const Node& reader = graph.graph.nodes[graph.reader];
  const auto repeat = reader.args.find("repeat");
  if (repeat == reader.args.end()) return absl::OkStatus();
  const auto* times = std::get_if<int64_t>(&repeat->second);
  if (times == nullptr || *times == 1) return absl::OkStatus();
  return InvalidArgument(
      "{}: repeat {}: want 1 with weights of classes, whose passes follow one "
      "another anyway",
      reader.op, *times);
}

// Checks one pipeline, and what the job's options ask of it.
absl::StatusOr<CheckedGraph> CheckSource(const JobSpec& spec, size_t number,
                                         std::span<const ValueType> stored) {
  ASSIGN_OR_RETURN(CheckedGraph checked,
                   Check(PipelineOf(spec, number), stored));
  if (HasGroupShares(SelectionOf(spec, number)))
    RETURN_IF_ERROR(CheckGroupReader(checked));
  if (!checked.typed) return checked;
  if (spec.on_bad_sample == BadSamplePolicy::kReplace && IsExternal(spec))
    return InvalidArgument(
        "on_bad_sample replace: consumers of {} bring the samples of their own "
        "rows only, no substitutes; want fail or zero",
        kExternalReader);
  if (spec.last_batch == LastBatch::kStream && IsExternal(spec))
    return InvalidArgument(
        "last_batch stream: consumers of {} bring samples by epochs; want "
        "drop, fill, pad, mask or partial",
        kExternalReader);
  if (NeedsDevices(spec.decoder_class))
    if (const absl::Status forms = CheckDecoderForms(checked); !forms.ok())
      return InvalidArgument("decoder_class {}: {}; want exact",
                             Name(spec.decoder_class), Message(forms));
  return checked;
}

std::string TextOf(const Field& field) {
  std::string shape;
  for (const int64_t size : field.shape)
    shape += fmt::format("{}{}", shape.empty() ? "" : ", ", size);
  return fmt::format("{} ({}{})", Name(field.dtype), shape,
                     field.shape.size() == 1 ? "," : "");
}

// Every source has the outputs of the first.
absl::Status CheckSameOutputs(const JobSpec& spec, const CheckedJob& job) {
  const std::vector<Field>& first = job.sources[0].schema.fields;
  const std::string& first_name = spec.sources[0].name;
  for (size_t i = 1; i < job.sources.size(); ++i) {
    const std::vector<Field>& own = job.sources[i].schema.fields;
    const std::string& name = spec.sources[i].name;
    if (own.size() != first.size())
      return InvalidArgument(
          "source \"{}\" has {} outputs, \"{}\" {}: want equal ones", name,
          own.size(), first_name, first.size());
    for (size_t f = 0; f < own.size(); ++f) {
      if (own[f].name != first[f].name)
        return InvalidArgument(
            "source \"{}\": output {} is \"{}\", that of \"{}\" \"{}\"", name,
            f, own[f].name, first_name, first[f].name);
      if (own[f] != first[f])
        return InvalidArgument(
            "source \"{}\": output \"{}\" is {}, that of \"{}\" {}", name,
            own[f].name, TextOf(own[f]), first_name, TextOf(first[f]));
    }
  }
  return absl::OkStatus();
}

absl::Status AddField(std::string_view name, DType dtype, std::string_view why,
                      BatchSchema* schema) {
  for (const Field& field : schema->fields)
    if (field.name == name)
      return InvalidArgument(
          "output \"{}\": want another name, as {} adds a field of this name",
          name, why);
  schema->fields.push_back({.name = std::string(name),
                            .dtype = dtype,
                            .shape = {},
                            .row_bytes = SizeOf(dtype)});
  return absl::OkStatus();
}

absl::Status SetSchema(const JobSpec& spec, CheckedJob* job) {
  job->schema = job->sources[0].schema;
  if (!spec.source_field.empty())
    RETURN_IF_ERROR(AddField(spec.source_field, DType::kInt32, "source_field",
                             &job->schema));
  if (HasValidField(spec))
    RETURN_IF_ERROR(AddField(kValidField, DType::kBool,
                             spec.last_batch == LastBatch::kMask
                                 ? "last_batch \"mask\""
                                 : "on_bad_sample \"zero\"",
                             &job->schema));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CheckedJob> CheckJob(const JobSpec& spec,
                                    std::span<const DatasetInfo> datasets) {
  const size_t count = NumSources(spec);
  RETURN_IF_ERROR(CheckOptions(spec));
  RETURN_IF_ERROR(IsMixture(spec) ? CheckMixture(spec) : CheckNoMixture(spec));
  RETURN_IF_ERROR(CheckSelections(spec));
  if (!datasets.empty() && datasets.size() != count)
    return InvalidArgument("{} datasets for {} sources", datasets.size(),
                           count);
  CheckedJob job;
  for (size_t i = 0; i < count; ++i) {
    absl::StatusOr<CheckedGraph> checked = CheckSource(
        spec, i,
        datasets.empty() ? std::span<const ValueType>() : datasets[i].types);
    if (!checked.ok() && IsMixture(spec))
      return Annotate(checked.status(),
                      fmt::format("source \"{}\"", spec.sources[i].name));
    RETURN_IF_ERROR(checked.status());
    job.typed = job.typed && checked->typed;
    job.sources.push_back(*std::move(checked));
  }
  if (IsMixture(spec) && IsExternal(spec))
    return InvalidArgument(
        "{}: want readers of stored samples in a mixture, as consumers bring "
        "samples of one source only",
        kExternalReader);
  if (!job.typed) return job;
  RETURN_IF_ERROR(CheckSameOutputs(spec, job));
  RETURN_IF_ERROR(SetSchema(spec, &job));
  if (NeedsDevices(spec.decoder_class))
    if (const absl::Status one = CheckOneKernel(spec, job); !one.ok())
      return InvalidArgument("decoder_class {}: {}; want exact",
                             Name(spec.decoder_class), Message(one));
  return job;
}

absl::Status CheckOneKernel(const JobSpec& spec, const CheckedJob& job) {
  if (!spec.source_field.empty())
    return Unimplemented(
        "GPUs do not write the number of a row's source (source_field)");
  const Digest first = ComputationOf(job.sources[0]);
  for (size_t i = 1; i < job.sources.size(); ++i)
    if (ComputationOf(job.sources[i]) != first)
      return Unimplemented(
          "sources \"{}\" and \"{}\" have different operators after their "
          "readers",
          spec.sources[0].name, spec.sources[i].name);
  return absl::OkStatus();
}

Digest ComputationOf(const CheckedGraph& graph) {
  Graph computed = graph.graph;
  computed.nodes[graph.reader].args.clear();
  computed.nodes[graph.reader].op.clear();
  computed.nodes[graph.stored].args.clear();
  Sha256 hash;
  hash.UpdateField(CanonicalText(computed));
  for (const ValueType& type : graph.types[graph.stored])
    hash.UpdateField(TypeText(type));
  return hash.Finish();
}

namespace {

absl::Status CheckAgainstOne(const JobSpec& spec, const DatasetInfo& dataset) {
  const uint64_t samples = dataset.shards.num_samples();
  if (samples == 0)
    return InvalidArgument("dataset \"{}\" has 0 samples: want at least 1",
                           dataset.name);
  const uint64_t parts = std::max(spec.num_parts, uint32_t{1});
  if (spec.last_batch == LastBatch::kDrop &&
      samples / parts < spec.batch / parts)
    return parts == 1
               ? InvalidArgument(
                     "batch {}: want at most {}, the samples of dataset "
                     "\"{}\", or a last_batch other than \"drop\"",
                     spec.batch, samples, dataset.name)
               : InvalidArgument(
                     "batch {} in {} parts takes {} rows a part: want at most "
                     "{}, the samples of the smallest part of dataset \"{}\", "
                     "or a last_batch other than \"drop\"",
                     spec.batch, parts, spec.batch / parts, samples / parts,
                     dataset.name);
  // A part without samples has none to repeat.
  if (spec.last_batch != LastBatch::kPartial && parts > samples)
    return InvalidArgument(
        "num_parts {}: want at most {}, the samples of dataset \"{}\", or "
        "last_batch \"partial\"",
        parts, samples, dataset.name);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAgainst(const JobSpec& spec,
                          std::span<const DatasetInfo> datasets) {
  if (!IsMixture(spec)) RETURN_IF_ERROR(CheckAgainstOne(spec, datasets[0]));
  if (!HasShareLayout(spec)) return absl::OkStatus();
  return ShareLayoutOf(spec, datasets).status();
}

}  // namespace leat
