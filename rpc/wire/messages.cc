// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire/messages.h"

#include <type_traits>
#include <vector>

#include "core/pipeline/arguments.h"
#include "core/redaction.h"
#include "core/status.h"
#include "core/utf8.h"
#include "google/protobuf/util/json_util.h"
#include "rpc/wire/json_trouble.h"

namespace leat::rpc {
namespace {

constexpr int kMaxNodes = 1000;
constexpr int kMaxTypes = 100;  // outputs of a reader
constexpr int kMaxAxes = 8;
constexpr int kMaxClasses = 1'000'000;
constexpr uint32_t kDefaultShuffleWindow = 16;

NodeRef FromProto(const v1::NodeRef& ref) { return {ref.node(), ref.output()}; }

v1::NodeRef ToProto(const NodeRef& ref) {
  v1::NodeRef proto;
  proto.set_node(ref.node);
  proto.set_output(ref.output);
  return proto;
}

struct ValueToProto {
  v1::Value* out;
  void operator()(bool value) const { out->set_bool_value(value); }
  void operator()(int64_t value) const { out->set_int_value(value); }
  void operator()(double value) const { out->set_float_value(value); }
  void operator()(const std::string& value) const {
    out->set_string_value(value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    out->mutable_ints_value()->mutable_values()->Add(values.begin(),
                                                     values.end());
  }
  void operator()(const std::vector<double>& values) const {
    out->mutable_floats_value()->mutable_values()->Add(values.begin(),
                                                       values.end());
  }
  void operator()(const std::vector<std::string>& values) const {
    out->mutable_strings_value()->mutable_values()->Assign(values.begin(),
                                                           values.end());
  }
  void operator()(const NodeRef& ref) const {
    *out->mutable_ref() = ToProto(ref);
  }
  void operator()(const LongList& list) const {
    v1::LongList* to = out->mutable_list_value();
    to->set_kind(static_cast<v1::ListKind>(list.kind));
    to->set_count(list.count);
    to->set_bytes(list.bytes);
    for (const Digest& block : list.blocks) to->add_blocks(BytesOf(block));
    to->mutable_first()->Assign(list.first.begin(), list.first.end());
  }
};

// The maximum lengths of lists: those of a message, or those of a caller.
enum class ListsOf { kMessage, kCaller };

absl::StatusOr<LongList> FromProto(const v1::LongList& proto) {
  LongList list;
  list.kind = static_cast<LongList::Kind>(proto.kind());
  list.count = proto.count();
  list.bytes = proto.bytes();
  for (const std::string& block : proto.blocks()) {
    ASSIGN_OR_RETURN(list.blocks.emplace_back(),
                     DigestOf("a block's name", block));
  }
  list.first.assign(proto.first().begin(), proto.first().end());
  RETURN_IF_ERROR(CompleteLongList(&list));
  return list;
}

absl::Status CheckShort(size_t count, size_t most, std::string_view what,
                        ListsOf lists) {
  if (count <= most || lists == ListsOf::kCaller) return absl::OkStatus();
  return InvalidArgument("{} {}: at most {}", count, what, most);
}

absl::StatusOr<Value> FromProto(const v1::Value& value, ListsOf lists) {
  switch (value.kind_case()) {
    case v1::Value::kBoolValue:
      return Value(value.bool_value());
    case v1::Value::kIntValue:
      return Value(static_cast<int64_t>(value.int_value()));
    case v1::Value::kFloatValue:
      return Value(value.float_value());
    case v1::Value::kStringValue:
      return Value(value.string_value());
    case v1::Value::kIntsValue: {
      const auto& values = value.ints_value().values();
      RETURN_IF_ERROR(CheckShort(static_cast<size_t>(values.size()),
                                 kMaxShortNumbers, "numbers", lists));
      return Value(std::vector<int64_t>(values.begin(), values.end()));
    }
    case v1::Value::kFloatsValue: {
      const auto& values = value.floats_value().values();
      RETURN_IF_ERROR(CheckShort(static_cast<size_t>(values.size()),
                                 kMaxShortNumbers, "numbers", lists));
      return Value(std::vector<double>(values.begin(), values.end()));
    }
    case v1::Value::kStringsValue: {
      const auto& values = value.strings_value().values();
      RETURN_IF_ERROR(CheckShort(static_cast<size_t>(values.size()),
                                 kMaxShortTexts, "texts", lists));
      return Value(std::vector<std::string>(values.begin(), values.end()));
    }
    case v1::Value::kRef:
      return Value(FromProto(value.ref()));
    case v1::Value::kListValue:
      return FromProto(value.list_value());
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return InvalidArgument("no value is set");
}

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

v1::Node ToProto(const Node& node) {
  v1::Node proto;
  proto.set_op(node.op);
  for (const NodeRef& input : node.inputs) *proto.add_inputs() = ToProto(input);
  for (const auto& [name, value] : node.args)
    std::visit(ValueToProto{&(*proto.mutable_args())[ToUtf8(name)]}, value);
  return proto;
}

v1::Graph ToProto(const Graph& graph) {
  v1::Graph proto;
  for (const Node& node : graph.nodes) *proto.add_nodes() = ToProto(node);
  for (const auto& [name, ref] : graph.outputs) {
    v1::GraphOutput* output = proto.add_outputs();
    output->set_name(name);
    *output->mutable_ref() = ToProto(ref);
  }
  return proto;
}

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
  return proto;
}

v1::Job ToProto(const JobInfo& job) {
  v1::Job proto;
  *proto.mutable_spec() = ToProto(job.spec);
  *proto.mutable_dataset() = ToProto(job.dataset);
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
  const bool redacted = RedactPlaces(&shown.spec.pipeline);
  v1::Job proto = ToProto(shown);
  proto.set_redacted(redacted);
  return proto;
}

namespace {

absl::StatusOr<Node> NodeFrom(const v1::Node& proto, ListsOf lists) {
  Node node;
  node.op = proto.op();
  for (const v1::NodeRef& input : proto.inputs())
    node.inputs.push_back(FromProto(input));
  for (const auto& [name, value] : proto.args()) {
    absl::StatusOr<Value> converted = FromProto(value, lists);
    if (!converted.ok())
      return Annotate(converted.status(),
                      fmt::format("{}: argument {}", proto.op(), name));
    node.args.emplace(name, *std::move(converted));
  }
  return node;
}

absl::StatusOr<Graph> GraphFrom(const v1::Graph& proto, ListsOf lists) {
  if (proto.nodes_size() > kMaxNodes)
    return InvalidArgument("pipeline of {} nodes: at most {}",
                           proto.nodes_size(), kMaxNodes);
  Graph graph;
  for (const v1::Node& node : proto.nodes()) {
    ASSIGN_OR_RETURN(Node converted, NodeFrom(node, lists));
    graph.nodes.push_back(std::move(converted));
  }
  for (const v1::GraphOutput& output : proto.outputs())
    graph.outputs.emplace_back(output.name(), FromProto(output.ref()));
  return graph;
}

// Converts all fields except the pipeline.
absl::StatusOr<JobSpec> SpecFrom(const v1::JobSpec& proto) {
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
                            DecoderClass::kExact, DecoderClass::kAuto));
  ASSIGN_OR_RETURN(spec.on_bad_sample,
                   EnumFrom("on_bad_sample", proto.on_bad_sample(),
                            BadSamplePolicy::kFail, BadSamplePolicy::kZero));
  if (proto.has_max_bad()) spec.max_bad = proto.max_bad();
  return spec;
}

}  // namespace

absl::StatusOr<Node> FromProto(const v1::Node& proto) {
  return NodeFrom(proto, ListsOf::kMessage);
}

absl::StatusOr<Graph> FromProto(const v1::Graph& proto) {
  ASSIGN_OR_RETURN(Graph graph, GraphFrom(proto, ListsOf::kMessage));
  RETURN_IF_ERROR(CheckLists(graph));
  return graph;
}

absl::StatusOr<Graph> FromCaller(const v1::Graph& proto) {
  ASSIGN_OR_RETURN(Graph graph, GraphFrom(proto, ListsOf::kCaller));
  RETURN_IF_ERROR(ShortenLists(&graph));
  return graph;
}

absl::StatusOr<JobSpec> FromProto(const v1::JobSpec& proto) {
  ASSIGN_OR_RETURN(Graph pipeline, FromProto(proto.pipeline()));
  ASSIGN_OR_RETURN(JobSpec spec, SpecFrom(proto));
  spec.pipeline = std::move(pipeline);
  return spec;
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
                                          DType::kFloat32));
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

absl::StatusOr<DatasetInfo> FromProto(const v1::Dataset& proto) {
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
  ASSIGN_OR_RETURN(dataset.shards, FromProto(proto.shards()));
  dataset.bytes = proto.bytes();
  dataset.classes.assign(proto.classes().begin(), proto.classes().end());
  ASSIGN_OR_RETURN(dataset.types, FromProto(proto.types()));
  return dataset;
}

absl::StatusOr<JobInfo> FromProto(const v1::Job& proto) {
  JobInfo job;
  ASSIGN_OR_RETURN(job.spec, FromProto(proto.spec()));
  ASSIGN_OR_RETURN(job.dataset, FromProto(proto.dataset()));
  for (const v1::Field& field : proto.schema()) {
    Field out{.name = field.name(),
              .shape = Shape(field.shape().begin(), field.shape().end())};
    ASSIGN_OR_RETURN(out.dtype, EnumFrom("dtype", field.dtype(), DType::kUint8,
                                         DType::kFloat32));
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
  if (!proto.redacted() && PlanHash(job.spec, job.dataset) != job.plan_hash)
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
  ASSIGN_OR_RETURN(Graph pipeline, FromCaller(proto.pipeline()));
  ASSIGN_OR_RETURN(JobSpec spec, SpecFrom(proto));
  spec.pipeline = std::move(pipeline);
  return spec;
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
