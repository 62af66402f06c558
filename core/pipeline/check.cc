// SPDX-License-Identifier: Apache-2.0
//
// Check() visits every node in order (operator, inputs, arguments, types), then
// the outputs; then it drops unused nodes and renumbers the rest.
#include <algorithm>
#include <set>

#include "core/pipeline/arguments.h"
#include "core/pipeline/operators.h"
#include "core/pipeline/reduction.h"
#include "core/pipeline/shape_inference.h"
#include "core/status.h"

namespace leat {
namespace {

constexpr size_t kMaxNodes = 1000;
constexpr size_t kMaxOutputs = 100;
constexpr size_t kMaxNameLength = 128;
constexpr size_t kMaxInputs = 16;  // of an operator that takes any number
// A worker keeps a table with a place for every number up to the largest key, as
// long as the job is open. So a request of some kilobytes could demand half a
// gigabyte of it.
constexpr uint64_t kMaxTableBytes = 16 << 20;

class Checker {
 public:
  Checker(const Graph& graph, std::span<const ValueType> stored)
      : graph_(graph), stored_(stored) {}

  absl::StatusOr<CheckedGraph> Run() {
    RETURN_IF_ERROR(CheckCounts());
    types_.resize(graph_.nodes.size());
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      if (absl::Status status = CheckNode(i); !status.ok())
        return Annotate(status,
                        fmt::format("node {} ({})", i, Shown(Op(i).op)));
    }
    RETURN_IF_ERROR(CheckOneReader());
    RETURN_IF_ERROR(CheckPack());
    if (!result_.typed) {
      result_.graph = std::move(graph_);
      return std::move(result_);
    }
    RETURN_IF_ERROR(CheckPartners());
    RETURN_IF_ERROR(CheckDrawsForSteps());
    RETURN_IF_ERROR(CheckOutputs());
    RETURN_IF_ERROR(CheckReductions(graph_));
    DropUnused();
    RETURN_IF_ERROR(CheckTables());
    return std::move(result_);
  }

 private:
  Node& Op(uint32_t node) { return graph_.nodes[node]; }

  absl::Status CheckCounts() const {
    if (graph_.nodes.empty() || graph_.nodes.size() > kMaxNodes)
      return InvalidArgument("pipeline has {} nodes, want 1 to {}",
                             graph_.nodes.size(), kMaxNodes);
    if (graph_.outputs.empty() || graph_.outputs.size() > kMaxOutputs)
      return InvalidArgument("pipeline has {} outputs, want 1 to {}",
                             graph_.outputs.size(), kMaxOutputs);
    return absl::OkStatus();
  }

  // Returns the type of an output of a node before `before`.
  absl::StatusOr<ValueType> TypeOf(const NodeRef& ref, uint32_t before) const {
    if (ref.node >= before)
      return InvalidArgument("refers to node {}, want an earlier one",
                             ref.node);
    const auto& outputs = types_[ref.node];
    if (ref.output >= outputs.size())
      return InvalidArgument(
          "refers to output {} of node {} ({}), which has {}", ref.output,
          ref.node, graph_.nodes[ref.node].op, outputs.size());
    return outputs[ref.output];
  }

  absl::Status CheckNode(uint32_t index) {
    Node& node = Op(index);
    const OperatorInfo* info = FindOperator(node.op);
    if (info == nullptr) {
      std::vector<std::string_view> known;
      for (const OperatorInfo& op : AllOperators()) known.push_back(op.name);
      return InvalidArgument("no operator \"{}\"{}", Shown(node.op),
                             Suggestion(node.op, known));
    }
    const auto wanted = static_cast<size_t>(info->inputs);
    const size_t most = info->variadic ? kMaxInputs : wanted;
    if (node.inputs.size() < wanted || node.inputs.size() > most)
      return InvalidArgument(
          "has {} inputs, want {}{}", node.inputs.size(), wanted,
          info->variadic ? fmt::format(" to {}", kMaxInputs) : "");
    std::vector<ValueType> inputs;
    for (const NodeRef& ref : node.inputs) {
      if (!result_.typed) break;
      auto type = TypeOf(ref, index);
      if (!type.ok()) return Annotate(type.status(), "input");
      inputs.push_back(*std::move(type));
    }
    RETURN_IF_ERROR(CheckArgs(*info, index));
    if (info->stored_types && stored_.empty()) result_.typed = false;
    if (!result_.typed) return absl::OkStatus();
    if (info->stored_types) {
      types_[index].assign(stored_.begin(), stored_.end());
    } else {
      ASSIGN_OR_RETURN(types_[index], InferTypes(&node, inputs));
    }
    return CheckBytes(types_[index]);
  }

  // Bounds values that are no outputs, too: the rules of types and the workers
  // compute with their sizes.
  static absl::Status CheckBytes(std::span<const ValueType> types) {
    for (const ValueType& type : types) {
      uint64_t bytes = SizeOf(type.dtype);
      for (const int64_t side : type.shape) {
        if (side <= 0) continue;
        if (static_cast<uint64_t>(side) > kMaxValueBytes / bytes)
          return InvalidArgument("its result is {}: over {} bytes",
                                 TypeText(type), kMaxValueBytes);
        bytes *= static_cast<uint64_t>(side);
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckArgs(const OperatorInfo& info, uint32_t index) {
    Node& node = Op(index);
    for (const auto& [name, value] : node.args) {
      const bool found = std::any_of(
          info.args.begin(), info.args.end(),
          [&, &wanted = name](const ArgInfo& a) { return a.name == wanted; });
      if (found) continue;
      std::vector<std::string_view> known;
      for (const ArgInfo& arg : info.args) known.push_back(arg.name);
      return InvalidArgument("no argument \"{}\"{}", Shown(name),
                             Suggestion(name, known));
    }
    for (const ArgInfo& arg : info.args) {
      const auto it = node.args.find(arg.name);
      if (it == node.args.end()) {
        if (!arg.default_value)
          return InvalidArgument("argument \"{}\" is missing, want {}",
                                 arg.name, ExpectedText(arg));
        node.args[arg.name] = *arg.default_value;
      } else if (absl::Status status = CheckArg(arg, index, &it->second);
                 !status.ok()) {
        return Annotate(status, fmt::format("argument \"{}\"", arg.name));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckArg(const ArgInfo& arg, uint32_t index, Value* value) {
    if (const auto* ref = std::get_if<NodeRef>(value))
      return CheckPerSample(arg, index, *ref);
    return CompleteArgument(arg, value);
  }

  absl::Status CheckPerSample(const ArgInfo& arg, uint32_t index,
                              const NodeRef& ref) const {
    if (!arg.per_sample)
      return InvalidArgument(
          "is another operator's output, want a constant: {}",
          ExpectedText(arg));
    if (!result_.typed) return absl::OkStatus();
    ASSIGN_OR_RETURN(const ValueType type, TypeOf(ref, index));
    const DType want =
        arg.type == ArgType::kBool ? DType::kBool : DType::kFloat32;
    if (type == ValueType{ValueType::Kind::kTensor, want, {}})
      return absl::OkStatus();
    return InvalidArgument("is {}, want a {} scalar", TypeText(type),
                           Name(want));
  }

  absl::Status CheckOneReader() {
    std::optional<uint32_t> reader;
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!IsReader(i)) continue;
      if (reader)
        return InvalidArgument(
            "nodes {} and {} ({}, {}) are both readers, want one", *reader, i,
            Op(*reader).op, Op(i).op);
      reader = i;
    }
    if (!reader)
      return InvalidArgument(
          "pipeline has no reader, want one, such as readers.image_folder");
    result_.reader = *reader;
    return absl::OkStatus();
  }

  // A pack gives the values of the records in place of its reader.
  absl::Status CheckPack() {
    result_.stored = result_.reader;
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      if (Op(i).op != "pack") continue;
      const auto refused = [&](std::string_view why) {
        return InvalidArgument("node {} (pack): {}", i, why);
      };
      if (result_.stored != result_.reader)
        return refused("a second pack, want one");
      if (Op(result_.reader).op == "readers.external")
        return refused(
            "documents of an external source have no order, want a reader of a "
            "dataset");
      for (const NodeRef& input : Op(i).inputs)
        if (input.node != result_.reader)
          return refused(
              "an input is the output of another operator, want "
              "outputs of the reader");
      result_.stored = i;
    }
    if (result_.stored == result_.reader) return absl::OkStatus();
    return CheckReaderHasNoOtherUser();
  }

  // A packed row has no single record whose other values it could have.
  absl::Status CheckReaderHasNoOtherUser() {
    bool used = false;  // the pack
    const auto refused = [&](const std::string& user) {
      return InvalidArgument(
          "{} uses an output of the reader, and so does the pack (node {}): a "
          "packed row is of several records, so want only outputs of the pack",
          user, result_.stored);
    };
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      bool uses_reader = false;
      ForEachRef(&Op(i), [&](NodeRef* ref) {
        uses_reader |= ref->node == result_.reader;
        used |= ref->node == result_.stored;
      });
      if (uses_reader && i != result_.stored)
        return refused(fmt::format("node {} ({})", i, Op(i).op));
    }
    for (const auto& [name, ref] : graph_.outputs) {
      if (ref.node == result_.reader)
        return refused(fmt::format("output \"{}\"", Shown(name)));
      used |= ref.node == result_.stored;
    }
    if (used) return absl::OkStatus();
    return InvalidArgument("node {} (pack): no output is made of it",
                           result_.stored);
  }

  // A partner of a partner is rejected: it would need a third row, and so on.
  absl::Status CheckPartners() {
    std::vector<bool> of_partner(graph_.nodes.size());
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      bool of_other = false;
      ForEachRef(&Op(i), [&](NodeRef* ref) {
        of_other = of_other || of_partner[ref->node];
      });
      of_partner[i] = of_other || Op(i).op == "partner";
      if (of_other && Op(i).op == "partner")
        return InvalidArgument(
            "node {} (partner): its input is made of another partner, want a "
            "value that a row has by itself",
            i);
      if (Op(i).op == "partner" && Op(result_.reader).op == "readers.external")
        return InvalidArgument(
            "node {} (partner): an external source brings each row its own "
            "sample, want a reader of a dataset",
            i);
    }
    return absl::OkStatus();
  }

  // A draw for a step is one number for all rows, so its arguments may not differ
  // from row to row.
  absl::Status CheckDrawsForSteps() {
    std::vector<bool> differs(graph_.nodes.size());
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto per = Op(i).args.find("per");
      const bool for_step =
          per != Op(i).args.end() && per->second == Value(std::string("batch"));
      differs[i] = Op(i).op == "partner" || IsReader(i) ||
                   (FindOperator(Op(i).op)->random && !for_step);
      ForEachRef(&Op(i), [&](NodeRef* ref) {
        differs[i] = differs[i] || differs[ref->node];
      });
      if (for_step && differs[i])
        return InvalidArgument(
            "node {} ({}): an argument is a value of each sample, and per = "
            "\"batch\" draws one number for all rows; want numbers, or per = "
            "\"sample\"",
            i, Op(i).op);
    }
    return absl::OkStatus();
  }

  bool IsReader(uint32_t node) { return Op(node).op.starts_with("readers."); }

  absl::Status CheckOutputs() {
    std::set<std::string_view> names;
    for (const auto& [name, ref] : graph_.outputs) {
      if (name.empty() || name.size() > kMaxNameLength ||
          name.find('\0') != name.npos)
        return InvalidArgument(
            "output name \"{}\" has {} bytes, want 1 to {} and none of them 0",
            Shown(name), name.size(), kMaxNameLength);
      if (!names.insert(name).second)
        return InvalidArgument("two outputs are named \"{}\"", name);
      auto type = TypeOf(ref, static_cast<uint32_t>(graph_.nodes.size()));
      if (!type.ok())
        return Annotate(type.status(), fmt::format("output \"{}\"", name));
      RETURN_IF_ERROR(AddField(name, *type));
    }
    return absl::OkStatus();
  }

  absl::Status AddField(const std::string& name, const ValueType& type) {
    if (type.kind == ValueType::Kind::kEncoded)
      return InvalidArgument(
          "output \"{}\" is an encoded image, want a tensor: decode it", name);
    Field field{name, type.dtype, type.shape, SizeOf(type.dtype)};
    for (const int64_t side : type.shape) {
      if (side < 1)
        return InvalidArgument(
            "output \"{}\" is {}, whose size differs from sample to sample; "
            "want one size: resize, crop or pad it",
            name, TypeText(type));
      const auto size = static_cast<size_t>(side);
      if (size > kMaxRowBytes / field.row_bytes)
        return InvalidArgument("output \"{}\" is {}: over {} bytes a row", name,
                               TypeText(type), kMaxRowBytes);
      field.row_bytes *= size;
    }
    result_.schema.fields.push_back(std::move(field));
    if (result_.schema.row_bytes() > kMaxRowBytes)
      return InvalidArgument("outputs have {} bytes a row, want at most {}",
                             result_.schema.row_bytes(), kMaxRowBytes);
    return absl::OkStatus();
  }

  // REQUIRES: unused nodes were dropped.
  absl::Status CheckTables() const {
    uint64_t bytes = 0;
    for (size_t i = 0; i < result_.graph.nodes.size(); ++i) {
      const Node& node = result_.graph.nodes[i];
      if (node.op != "lookup_table") continue;
      const auto& keys = std::get<std::vector<int64_t>>(node.args.at("keys"));
      bytes += (static_cast<uint64_t>(std::ranges::max(keys)) + 1) *
               SizeOf(result_.types[i][0].dtype);
    }
    if (bytes <= kMaxTableBytes) return absl::OkStatus();
    return InvalidArgument(
        "the tables of all lookup_table operators have {} bytes, want at most "
        "{}: a table has a place for every number up to its largest key",
        bytes, kMaxTableBytes);
  }

  // Moves the nodes that the outputs need, and the reader, to the result.
  void DropUnused() {
    const size_t count = graph_.nodes.size();
    std::vector<bool> used(count);
    used[result_.reader] = true;
    for (const auto& [name, ref] : graph_.outputs) used[ref.node] = true;
    for (size_t i = count; i-- > 0;)
      if (used[i])
        ForEachRef(&graph_.nodes[i], [&](NodeRef* r) { used[r->node] = true; });
    std::vector<uint32_t> new_index(count);
    for (size_t i = 0; i < count; ++i) {
      if (!used[i]) continue;
      new_index[i] = static_cast<uint32_t>(result_.graph.nodes.size());
      const auto renumber = [&](NodeRef* r) { r->node = new_index[r->node]; };
      ForEachRef(&graph_.nodes[i], renumber);
      result_.graph.nodes.push_back(std::move(graph_.nodes[i]));
      result_.types.push_back(std::move(types_[i]));
    }
    for (auto& [name, ref] : graph_.outputs) ref.node = new_index[ref.node];
    result_.graph.outputs = std::move(graph_.outputs);
    result_.reader = new_index[result_.reader];
    result_.stored = new_index[result_.stored];
  }

  template <class Function>
  static void ForEachRef(Node* node, Function function) {
    for (NodeRef& ref : node->inputs) function(&ref);
    for (auto& [name, value] : node->args)
      if (auto* ref = std::get_if<NodeRef>(&value)) function(ref);
  }

  Graph graph_;
  const std::span<const ValueType> stored_;
  std::vector<std::vector<ValueType>> types_;
  CheckedGraph result_;
};

}  // namespace

absl::StatusOr<CheckedGraph> Check(const Graph& graph,
                                   std::span<const ValueType> stored) {
  return Checker(graph, stored).Run();
}

}  // namespace leat
