// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire/graph_messages.h"

#include <type_traits>
#include <vector>

#include "core/pipeline/arguments.h"
#include "core/status.h"
#include "core/utf8.h"

namespace leat::rpc {
namespace {

constexpr int kMaxNodes = 1000;

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

}  // namespace leat::rpc
