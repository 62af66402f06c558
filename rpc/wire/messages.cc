// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire/messages.h"

#include <vector>

#include "core/plan/share_schedule.h"
#include "core/redaction.h"
#include "core/status.h"
#include "core/utf8.h"
#include "google/protobuf/util/json_util.h"
#include "rpc/wire/json_trouble.h"

namespace leat::rpc {
namespace {

constexpr int kMaxTypes = 100;  // outputs of a reader
constexpr int kMaxAxes = 8;
constexpr int kMaxClasses = 1'000'000;
constexpr uint32_t kDefaultShuffleWindow = 16;
// Returns `value`, or `fallback` if unspecified. Enumerators' numbers are the
// same on both sides, from 1 to `last`.
template <class Enum>
absl::StatusOr<Enum> EnumFrom(const char* field, int value, Enum fallback,
                              Enum last) {
  if (value == 0) return fallback;
  if (value < 0 || value > static_cast<int>(last))
    return InvalidArgument("{} {}: want 1 to {}", field, value,
                           static_cast<int>(last));
  return static_cast<Enum>(value);
}

}  // namespace

v1::JobSpec ToProto(const JobSpec& spec) {
  v1::JobSpec proto;
  proto.set_name(spec.name);
  *proto.mutable_pipeline() = ToProto(spec.pipeline);
  proto.set_seed(spec.seed);
  proto.set_batch(spec.batch);
  proto.set_order(static_cast<v1::Order>(spec.order));
  proto.set_last_batch(static_cast<v1::LastBatch>(spec.last_batch));
  proto.set_num_parts(spec.num_parts);
  proto.set_rotate_parts(spec.rotate_parts);
  proto.set_mix_parts(spec.mix_parts);
  proto.set_shuffle_window(spec.shuffle_window);
  proto.set_decoder_class(static_cast<v1::DecoderClass>(spec.decoder_class));
  proto.set_on_bad_sample(static_cast<v1::BadSamplePolicy>(spec.on_bad_sample));
  if (spec.max_bad) proto.set_max_bad(*spec.max_bad);
  if (spec.augment_seed) proto.set_augment_seed(*spec.augment_seed);
  if (IsSet(spec.selection))
    *proto.mutable_selection() = ToProto(spec.selection);
  // Parts that do not fit stay, so that the check sees them: a pipeline beside
  // sources, or shares without them.
  if (IsMixture(spec) && spec.pipeline == Graph()) proto.clear_pipeline();
  for (const MixedSource& source : spec.sources) {
    v1::MixedSource* out = proto.add_sources();
    out->set_name(source.name);
    *out->mutable_pipeline() = ToProto(source.pipeline);
    if (IsSet(source.selection))
      *out->mutable_selection() = ToProto(source.selection);
  }
  for (const SharesFrom& shares : spec.shares) {
    v1::SharesFrom* out = proto.add_shares();
    out->set_from_step(shares.from_step);
    out->mutable_weights()->Add(shares.weights.begin(), shares.weights.end());
  }
  if (IsMixture(spec) || spec.mix_end != MixEnd::kStream)
    proto.set_mix_end(static_cast<v1::MixEnd>(spec.mix_end));
  proto.set_source_field(spec.source_field);
  return proto;
}

v1::ShardTable ToProto(const ShardTable& shards) {
  v1::ShardTable proto;
  proto.set_num_samples(shards.num_samples());
  if (shards.uniform()) {
    proto.set_shard_size(shards.shard_size());
  } else {
    for (uint32_t shard = 0; shard < shards.num_shards(); ++shard)
      proto.add_sizes(shards.range(shard).size());
  }
  return proto;
}

v1::ValueType ToProto(const ValueType& type) {
  v1::ValueType proto;
  proto.set_encoded(type.kind == ValueType::Kind::kEncoded);
  proto.set_dtype(static_cast<v1::DType>(type.dtype));
  proto.mutable_shape()->Add(type.shape.begin(), type.shape.end());
  return proto;
}

v1::Dataset ToProto(const DatasetInfo& dataset) {
  v1::Dataset proto;
  proto.set_id(dataset.id);
  proto.set_name(dataset.name);
  proto.set_reader(Redacted(dataset.reader));
  proto.set_fingerprint(BytesOf(dataset.fingerprint));
  if (dataset.content != Digest{}) proto.set_content(BytesOf(dataset.content));
  *proto.mutable_shards() = ToProto(dataset.shards);
  proto.set_bytes(dataset.bytes);
  for (const std::string& name : dataset.classes) proto.add_classes(name);
  for (const ValueType& type : dataset.types)
    *proto.add_types() = ToProto(type);
  SetGroups(dataset.groups, proto.mutable_groups());
  proto.set_arrangement(Redacted(dataset.arrangement));
  if (dataset.base != nullptr) *proto.mutable_base() = ToProto(*dataset.base);
  return proto;
}

v1::Job ToProto(const JobInfo& job) {
  v1::Job proto;
  *proto.mutable_spec() = ToProto(job.spec);
  if (IsMixture(job.spec))
    for (const DatasetInfo& dataset : job.datasets)
      *proto.add_datasets() = ToProto(dataset);
  else
    *proto.mutable_dataset() = ToProto(job.datasets[0]);
  for (const Field& field : job.schema.fields) {
    v1::Field* out = proto.add_schema();
    out->set_name(field.name);
    out->set_dtype(static_cast<v1::DType>(field.dtype));
    out->mutable_shape()->Add(field.shape.begin(), field.shape.end());
  }
  proto.set_plan_hash(BytesOf(job.plan_hash));
  return proto;
}

v1::Job ShownToProto(const JobInfo& job) {
  JobInfo shown = job;
  bool redacted = false;
  for (size_t i = 0; i < NumSources(shown.spec); ++i) {
    if (RedactPlaces(&PipelineOf(shown.spec, i))) redacted = true;
    if (RedactPlaces(&SelectionOf(shown.spec, i))) redacted = true;
  }
  v1::Job proto = ToProto(shown);
  proto.set_redacted(redacted);
  return proto;
}

namespace {

absl::Status SetMixture(const v1::JobSpec& proto, JobSpec* spec) {
  if (proto.sources_size() > static_cast<int>(kMaxSources) ||
      proto.shares_size() > static_cast<int>(kMaxSegments))
    return InvalidArgument(
        "{} sources and {} segments of shares: want at most {} and {}",
        proto.sources_size(), proto.shares_size(), kMaxSources, kMaxSegments);
  for (const v1::SharesFrom& shares : proto.shares()) {
    if (shares.weights_size() > static_cast<int>(kMaxSources))
      return InvalidArgument("{} weights: want at most {}",
                             shares.weights_size(), kMaxSources);
    spec->shares.push_back(
        {.from_step = shares.from_step(),
         .weights = {shares.weights().begin(), shares.weights().end()}});
  }
  ASSIGN_OR_RETURN(spec->mix_end, EnumFrom("mix_end", proto.mix_end(),
                                           MixEnd::kStream, MixEnd::kAll));
  spec->source_field = proto.source_field();
  return absl::OkStatus();
}

// Converts the pipelines by `graph_from`, and all other fields.
template <class GraphFrom>
absl::StatusOr<JobSpec> SpecFrom(const v1::JobSpec& proto,
                                 GraphFrom graph_from) {
  JobSpec spec;
  spec.name = proto.name();
  spec.seed = proto.seed();
  spec.batch = proto.batch();
  ASSIGN_OR_RETURN(spec.order,
                   EnumFrom("order", proto.order(), Order::kGlobalShuffle,
                            Order::kShardShuffle));
  ASSIGN_OR_RETURN(spec.last_batch,
                   EnumFrom("last_batch", proto.last_batch(), LastBatch::kDrop,
                            LastBatch::kMask));
  spec.num_parts = proto.num_parts();
  spec.rotate_parts = proto.rotate_parts();
  spec.mix_parts = proto.mix_parts();
  spec.shuffle_window = proto.shuffle_window() == 0 ? kDefaultShuffleWindow
                                                    : proto.shuffle_window();
  ASSIGN_OR_RETURN(spec.decoder_class,
                   EnumFrom("decoder_class", proto.decoder_class(),
                            DecoderClass::kExact, DecoderClass::kNvjpegShared));
  ASSIGN_OR_RETURN(spec.on_bad_sample,
                   EnumFrom("on_bad_sample", proto.on_bad_sample(),
                            BadSamplePolicy::kFail, BadSamplePolicy::kZero));
  if (proto.has_max_bad()) spec.max_bad = proto.max_bad();
  if (proto.has_augment_seed()) spec.augment_seed = proto.augment_seed();
  ASSIGN_OR_RETURN(spec.selection, rpc::FromProto(proto.selection()));
  RETURN_IF_ERROR(SetMixture(proto, &spec));
  if (proto.has_pipeline() || proto.sources().empty()) {
    ASSIGN_OR_RETURN(spec.pipeline, graph_from(proto.pipeline()));
  }
  for (const v1::MixedSource& source : proto.sources()) {
    MixedSource& own = spec.sources.emplace_back();
    own.name = source.name();
    ASSIGN_OR_RETURN(own.pipeline, graph_from(source.pipeline()));
    ASSIGN_OR_RETURN(own.selection, rpc::FromProto(source.selection()));
  }
  return spec;
}

}  // namespace

absl::StatusOr<JobSpec> FromProto(const v1::JobSpec& proto) {
  return SpecFrom(proto,
                  [](const v1::Graph& graph) { return FromProto(graph); });
}

absl::StatusOr<ShardTable> FromProto(const v1::ShardTable& proto) {
  if (proto.sizes().empty())
    return ShardTable::Uniform(proto.num_samples(), proto.shard_size());
  const std::vector<uint64_t> sizes(proto.sizes().begin(), proto.sizes().end());
  ASSIGN_OR_RETURN(ShardTable shards, ShardTable::FromSizes(sizes));
  if (shards.num_samples() != proto.num_samples())
    return InvalidArgument(
        "shard table: num_samples {} is not the sum of sizes, {}",
        proto.num_samples(), shards.num_samples());
  return shards;
}

absl::StatusOr<std::vector<ValueType>> FromProto(
    const google::protobuf::RepeatedPtrField<v1::ValueType>& protos) {
  if (protos.size() > kMaxTypes)
    return InvalidArgument("a reader of {} outputs, at most {}", protos.size(),
                           kMaxTypes);
  std::vector<ValueType> types;
  for (const v1::ValueType& proto : protos) {
    ValueType type;
    if (proto.encoded()) type.kind = ValueType::Kind::kEncoded;
    ASSIGN_OR_RETURN(type.dtype, EnumFrom("dtype", proto.dtype(), DType::kUint8,
                                          kLastDType));
    if (proto.shape_size() > kMaxAxes)
      return InvalidArgument("a reader's output of {} axes, at most {}",
                             proto.shape_size(), kMaxAxes);
    type.shape.assign(proto.shape().begin(), proto.shape().end());
    for (const int64_t size : type.shape)
      if (size < -1 || size == 0)
        return InvalidArgument("a reader's output of size {}", size);
    types.push_back(std::move(type));
  }
  return types;
}

namespace {

absl::StatusOr<DatasetInfo> DatasetFrom(const v1::Dataset& proto) {
  if (proto.classes_size() > kMaxClasses)
    return InvalidArgument("dataset {}: {} classes, at most {}", proto.name(),
                           proto.classes_size(), kMaxClasses);
  DatasetInfo dataset;
  dataset.id = proto.id();
  dataset.name = proto.name();
  dataset.reader = proto.reader();
  ASSIGN_OR_RETURN(dataset.fingerprint,
                   DigestOf("fingerprint", proto.fingerprint()));
  if (!proto.content().empty()) {
    ASSIGN_OR_RETURN(dataset.content, DigestOf("content", proto.content()));
  }
  ASSIGN_OR_RETURN(dataset.shards, rpc::FromProto(proto.shards()));
  dataset.bytes = proto.bytes();
  dataset.classes.assign(proto.classes().begin(), proto.classes().end());
  ASSIGN_OR_RETURN(dataset.types, rpc::FromProto(proto.types()));
  ASSIGN_OR_RETURN(dataset.groups,
                   GroupsFrom(proto.groups(), dataset.shards.num_samples()));
  return dataset;
}

}  // namespace

absl::StatusOr<DatasetInfo> FromProto(const v1::Dataset& proto) {
  ASSIGN_OR_RETURN(DatasetInfo dataset, DatasetFrom(proto));
  dataset.arrangement = proto.arrangement();
  if (!proto.has_base()) return dataset;
  // A base has none itself, so that no message nests deeply.
  ASSIGN_OR_RETURN(DatasetInfo base, DatasetFrom(proto.base()));
  dataset.base = std::make_shared<const DatasetInfo>(std::move(base));
  return dataset;
}

namespace {

absl::Status SetDatasets(const v1::Job& proto, JobInfo* job) {
  const size_t count = IsMixture(job->spec) ? proto.datasets_size() : 1;
  if (count != NumSources(job->spec))
    return InvalidArgument("job {}: {} datasets for {} sources", job->spec.name,
                           count, NumSources(job->spec));
  for (size_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(job->datasets.emplace_back(),
                     rpc::FromProto(IsMixture(job->spec)
                                        ? proto.datasets(static_cast<int>(i))
                                        : proto.dataset()));
  }
  return absl::OkStatus();
}

// Hashes and plans of a mixture REQUIRE a schedule.
absl::Status CheckShares(const JobSpec& spec) {
  if (spec.batch == 0 || spec.batch > kMaxBatch)
    return InvalidArgument("job {}: batch {}: want 1 to {}", spec.name,
                           spec.batch, kMaxBatch);
  return Annotate(ScheduleOf(spec).status(), fmt::format("job {}", spec.name));
}

}  // namespace

absl::StatusOr<JobInfo> FromProto(const v1::Job& proto) {
  JobInfo job;
  ASSIGN_OR_RETURN(job.spec, FromProto(proto.spec()));
  RETURN_IF_ERROR(SetDatasets(proto, &job));
  for (const v1::Field& field : proto.schema()) {
    Field out{.name = field.name(),
              .shape = Shape(field.shape().begin(), field.shape().end())};
    ASSIGN_OR_RETURN(
        out.dtype, EnumFrom("dtype", field.dtype(), DType::kUint8, kLastDType));
    out.row_bytes = SizeOf(out.dtype);
    for (int64_t size : out.shape) {
      if (size <= 0 || out.row_bytes > kMaxRowBytes / static_cast<size_t>(size))
        return InvalidArgument(
            "field {}: a row of more than {} bytes, or an empty one", out.name,
            kMaxRowBytes);
      out.row_bytes *= static_cast<size_t>(size);
    }
    job.schema.fields.push_back(std::move(out));
  }
  ASSIGN_OR_RETURN(job.plan_hash, DigestOf("plan_hash", proto.plan_hash()));
  if (IsMixture(job.spec)) RETURN_IF_ERROR(CheckShares(job.spec));
  if (!proto.redacted() && PlanHash(job.spec, job.datasets) != job.plan_hash)
    return InvalidArgument(
        "job {}: its plan hash is not that of its spec: do both sides run the "
        "same release?",
        job.spec.name);
  return job;
}

absl::StatusOr<JobSpec> JobSpecFromJson(std::string_view json) {
  v1::JobSpec proto;
  const auto parsed = google::protobuf::util::JsonStringToMessage(
      {json.data(), json.size()}, &proto);
  if (!parsed.ok())
    return InvalidArgument("job spec: {}",
                           JsonTrouble(json, std::string(parsed.message()),
                                       *proto.GetDescriptor()));
  return SpecFrom(proto,
                  [](const v1::Graph& graph) { return FromCaller(graph); });
}

std::string ToJson(const JobSpec& spec) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  // This fails only on malformed Any messages: the message has none.
  (void)google::protobuf::util::MessageToJsonString(ToProto(spec), &json,
                                                    options);
  return json;
}

}  // namespace leat::rpc
