// SPDX-License-Identifier: Apache-2.0
//
// The table of what GPUs compute (core/device_forms.h) and the compiler for
// GPUs agree.
#include "core/device_forms.h"

#include <random>
#include <set>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/gpu/fused_graphs.h"
#include "tests/worker/gpu/staged_graphs.h"
#include "worker/gpu/fused_program.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

Value Word(const char* text) { return Value(std::string(text)); }

// Of a reader: an image, a label, a list of any length, a large array.
const std::vector<ValueType> kStored = {
    {ValueType::Kind::kEncoded, DType::kUint8, {}},
    {ValueType::Kind::kTensor, DType::kInt32, {}},
    {ValueType::Kind::kTensor, DType::kFloat32, {-1}},
    {ValueType::Kind::kTensor, DType::kUint8, {100, 100, 3}}};

// What operators are given.
struct Sources {
  Graph graph;
  std::vector<NodeRef> values;   // of all kinds
  std::vector<NodeRef> numbers;  // for arguments
  NodeRef flag;
};

Sources MakeSources() {
  Sources s;
  s.graph.nodes = {
      {"readers.numpy", {}, {{"path", Word("/data")}}},
      {"decode", {{0, 0}}, {}},
      {"resize", {{1, 0}}, {{"size", Ints{8, 9}}}},
      {"flip", {{1, 0}}, {}},
      {"cast", {{2, 0}}, {{"dtype", Word("float32")}}},
      {"brightness", {{2, 0}}, {{"dtype", Word("float32")}}},
      {"invert", {{2, 0}}, {}},
      {"lt", {{6, 0}, {2, 0}}, {}},
      {"one_hot", {{0, 1}}, {{"num_classes", Value(int64_t{9})}}},
      {"uniform", {}, {}},
      {"coin_flip", {}, {}},
      {"crop", {{4, 0}}, {{"size", Ints{1, 1}}}},
      {"slice", {{11, 0}}, {{"axes", Ints{2}}, {"shape", Ints{1}}}},
      {"reshape", {{12, 0}}, {{"shape", Ints{}}}},
      // Of a size that is the sample's; a flag that is computed of pixels.
      {"invert", {{1, 0}}, {}},
      {"cast", {{3, 0}}, {{"dtype", Word("float32")}}},
      {"lt", {{13, 0}, {9, 0}}, {}}};
  for (uint32_t output = 0; output < kStored.size(); ++output)
    s.values.push_back({0, output});
  for (const uint32_t node : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 14, 15, 16})
    s.values.push_back({node, 0});
  s.numbers = {{9, 0}, {13, 0}};
  s.flag = {10, 0};
  s.graph.outputs = {{"image", {2, 0}}};
  return s;
}

// Something that an argument without a default can be.
std::optional<Value> Required(const ArgInfo& arg) {
  const double number = arg.min <= arg.max ? (arg.min + arg.max) / 2 : 1;
  if (arg.name == "perm") return Ints{2, 0, 1};
  if (arg.name == "probabilities") return Floats{0.5, 0.5};
  if (arg.name == "values") return Floats{1, 2};
  switch (arg.type) {
    case ArgType::kInts:
      return Ints{4, 3};
    case ArgType::kFloats:
      return Floats{number};
    case ArgType::kFloat:
      return number;
    case ArgType::kInt:
      return int64_t{4};
    case ArgType::kString:
      return arg.choices.empty() ? Word("float32") : Value(arg.choices.back());
    default:
      return std::nullopt;
  }
}

// `graph` with the node as an output, by a `resize` if its size differs from
// sample to sample.
absl::StatusOr<CheckedGraph> With(Graph graph, const Node& node) {
  graph.nodes.push_back(node);
  const auto last = static_cast<uint32_t>(graph.nodes.size() - 1);
  graph.outputs.push_back({"made", {last, 0}});
  absl::StatusOr<CheckedGraph> checked = Check(graph, kStored);
  if (checked.ok()) return checked;
  for (const char* op : {"resize", "length"}) {
    Graph sized = graph;
    sized.nodes.push_back({op, {{last, 0}}, {}});
    if (sized.nodes.back().op == "resize")
      sized.nodes.back().args["size"] = Ints{4, 4};
    sized.outputs.back().second.node = last + 1;
    if (absl::StatusOr<CheckedGraph> other = Check(sized, kStored); other.ok())
      return other;
  }
  return checked;
}

// Bounds that the table leaves to the compiler.
bool IsABound(const absl::Status& status) {
  for (const char* text :
       {"too many views", "its tables may take", "tables of normalize and cast",
        "bytes of a row are too few"})
    if (status.message().find(text) != absl::string_view::npos) return true;
  return false;
}

// Both say the same; whether the GPU computes it.
bool ExpectAgreement(const CheckedGraph& graph) {
  const absl::Status table = CheckDeviceForms(graph);
  const auto program = FusedProgram::Compile(graph, 1);
  const absl::Status& compiler = program.status();
  EXPECT_TRUE(table.ok() || absl::IsUnimplemented(table)) << table;
  EXPECT_TRUE(compiler.ok() || absl::IsUnimplemented(compiler)) << compiler;
  if (!IsABound(compiler)) {
    EXPECT_EQ(table.ok(), compiler.ok())
        << "table: " << table << "\ncompiler: " << compiler << "\n"
        << CanonicalText(graph.graph);
  }
  const absl::Status nvjpeg = CheckDecoderForms(graph);
  EXPECT_TRUE(nvjpeg.ok() || absl::IsUnimplemented(nvjpeg)) << nvjpeg;
  EXPECT_LE(nvjpeg.ok(), table.ok());
  if (program.ok()) {
    EXPECT_EQ(nvjpeg.ok(),
              !(*program)->has_partner() && !(*program)->has_own_sizes())
        << nvjpeg << "\n"
        << CanonicalText(graph.graph);
  }
  return table.ok();
}

// Every way to give the operator its inputs, and each argument that may be a
// sample's.
class AllWays {
 public:
  AllWays(const OperatorInfo& info, const Sources& sources)
      : info_(info), sources_(sources) {
    for (const ArgInfo& arg : info.args)
      if (!arg.default_value)
        if (std::optional<Value> value = Required(arg))
          node_.args[arg.name] = *std::move(value);
    node_.op = info.name;
    // What all images have the same size by.
    if (info.name == "resize") node_.args["size"] = Ints{4, 3};
    if (info.name == "rotate") node_.args["keep_size"] = Value(true);
  }

  void Try() { TryInputs(info_.inputs); }
  int tried() const { return tried_; }
  int computed() const { return computed_; }

 private:
  void TryInputs(int left) {
    if (left == 0) return TryArguments();
    for (const NodeRef& value : sources_.values) {
      node_.inputs.push_back(value);
      TryInputs(left - 1);
      node_.inputs.pop_back();
    }
  }
  void TryArguments() {
    TryNode(node_);
    for (const ArgInfo& arg : info_.args) {
      if (!arg.per_sample) continue;
      for (const NodeRef& number : sources_.numbers) {
        Node node = node_;
        node.args[arg.name] =
            arg.type == ArgType::kBool ? sources_.flag : number;
        TryNode(node);
      }
    }
  }
  void TryNode(const Node& node) {
    const absl::StatusOr<CheckedGraph> graph = With(sources_.graph, node);
    if (!graph.ok()) return;
    ++tried_;
    computed_ += ExpectAgreement(*graph) ? 1 : 0;
  }

  const OperatorInfo& info_;
  const Sources& sources_;
  Node node_;
  int tried_ = 0, computed_ = 0;
};

TEST(DeviceForms, TheTableAndTheCompilerAgreeOnEveryOperator) {
  const Sources sources = MakeSources();
  std::set<std::string> never;
  for (const OperatorInfo& info : AllOperators()) {
    if (info.name.starts_with("readers.")) continue;
    AllWays ways(info, sources);
    ways.Try();
    EXPECT_GT(ways.tried(), 0) << info.name << ": give it arguments that fit";
    if (ways.computed() == 0) never.insert(info.name);
  }
  // A second decode of the sources' is one too many.
  EXPECT_THAT(never,
              ::testing::ElementsAre("decode", "jpeg_compression_distortion",
                                     "peek_shape"));
}

TEST(DeviceForms, TheTableAndTheCompilerAgreeOnRandomPipelines) {
  std::mt19937 random(7);
  int computed = 0, rounds = 0;
  const auto expect = [&](const Graph& graph) {
    const auto checked = Check(graph);
    if (!checked.ok()) return;
    ++rounds;
    computed += ExpectAgreement(*checked) ? 1 : 0;
  };
  for (int round = 0; round < 300; ++round) {
    const Graph fused = RandomGraph(random).Make();
    expect(fused);
    // One more operator, which may be one too many.
    Graph more = fused;
    const char* const ops[] = {"resize", "flip", "cast",
                               "jpeg_compression_distortion"};
    Node node{ops[random() % 4], {more.outputs[0].second}, {}};
    if (node.op == "resize") node.args["size"] = Ints{9, 9};
    if (node.op == "cast") node.args["dtype"] = Word("float32");
    more.nodes.push_back(node);
    more.outputs[0].second = {static_cast<uint32_t>(more.nodes.size() - 1), 0};
    expect(more);
    // The same behind another row's value.
    Graph beside = fused;
    const auto last = static_cast<uint32_t>(beside.nodes.size());
    beside.nodes.push_back({"partner", {beside.outputs[0].second}, {}});
    node.inputs[0] = {last, 0};
    beside.nodes.push_back(node);
    beside.outputs[0].second = {last + 1, 0};
    expect(beside);
    beside.outputs[0].second = {last, 0};
    beside.nodes.pop_back();
    expect(beside);
    expect(RandomStagedGraph(random).Make(6));
  }
  EXPECT_GT(computed, rounds / 4);
  EXPECT_LT(computed, rounds - rounds / 20);
}

// What a chain cannot go on with, it gives to a stage from there on.
TEST(DeviceForms, AChainThatIsLookedAtInTheMiddleIsCutWhereItMust) {
  Graph graph;
  graph.nodes = {{"readers.image_folder", {}, {{"path", Word("/data")}}},
                 {"decode", {{0, 0}}, {}},
                 {"flip", {{1, 0}}, {{"horizontal", Value(true)}}},
                 {"crop", {{2, 0}}, {{"size", Ints{20, 20}}}},
                 {"resize", {{3, 0}}, {{"size", Ints{9, 9}}}},
                 {"crop", {{2, 0}}, {{"size", Ints{8, 8}}}}};
  graph.outputs = {{"small", {4, 0}}, {"part", {5, 0}}};
  const auto checked = Check(graph);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_TRUE(ExpectAgreement(*checked));
}

TEST(DeviceForms, NamesTheNodeAndWhy) {
  const auto why = [](const Node& last) {
    Graph graph;
    graph.nodes = {{"readers.image_folder", {}, {{"path", Word("/data")}}},
                   {"decode", {{0, 0}}, {}},
                   {"resize", {{1, 0}}, {{"size", Ints{8}}}},
                   last};
    graph.nodes[3].inputs = {{2, 0}};
    graph.outputs = {{"x", {3, 0}}};
    const auto checked = Check(graph);
    EXPECT_TRUE(checked.ok()) << checked.status();
    return std::string(CheckDeviceForms(*checked).message());
  };
  EXPECT_EQ(why({"jpeg_compression_distortion", {}, {}}),
            "node 3 (jpeg_compression_distortion) has no device form");
  EXPECT_EQ(why({"rand_augment",
                 {},
                 {{"n", Value(int64_t{9})}, {"m", Value(int64_t{3})}}}),
            "node 3 (rand_augment) does more than 8 operations");
  EXPECT_EQ(why({"brightness", {}, {}}), "");
  Graph none;
  none.nodes = {{"readers.image_folder", {}, {{"path", Word("/data")}}}};
  none.outputs = {{"label", {0, 1}}};
  EXPECT_THAT(std::string(CheckDeviceForms(*Check(none)).message()),
              HasSubstr("no output is made of an image"));
}

}  // namespace
}  // namespace leat::worker
