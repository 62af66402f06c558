// SPDX-License-Identifier: Apache-2.0
//
// The table of what GPUs compute (core/pipeline/device_forms.h) and the
// compiler for GPUs agree.
#include "core/pipeline/device_forms.h"

#include <random>
#include <set>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/gpu/fused/graphs.h"
#include "tests/worker/gpu/stages/graphs.h"
#include "worker/gpu/fused/program.h"

namespace leat::worker {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

Value Word(const char* text) { return Value(std::string(text)); }

// A reader's outputs: an image, a label, a list of any length, a large array.
const std::vector<ValueType> kStored = {
    {ValueType::Kind::kEncoded, DType::kUint8, {}},
    {ValueType::Kind::kTensor, DType::kInt32, {}},
    {ValueType::Kind::kTensor, DType::kFloat32, {-1}},
    {ValueType::Kind::kTensor, DType::kUint8, {100, 100, 3}}};

// Inputs for operators.
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
      // A size that differs per sample; a flag that depends on pixels.
      {"invert", {{1, 0}}, {}},
      {"cast", {{3, 0}}, {{"dtype", Word("float32")}}},
      {"lt", {{13, 0}, {9, 0}}, {}},
      {"lt", {{14, 0}, {9, 0}}, {}}};
  for (uint32_t output = 0; output < kStored.size(); ++output)
    s.values.push_back({0, output});
  for (const uint32_t node :
       {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15, 16, 17})
    s.values.push_back({node, 0});
  s.numbers = {{9, 0}, {13, 0}};
  s.flag = {10, 0};
  s.graph.outputs = {{"image", {2, 0}}};
  return s;
}

// Returns a valid value for an argument without a default.
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

// Returns `graph` with the node as an output, with a `resize` if its size
// differs from sample to sample.
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

// True for bounds that the table leaves to the compiler.
bool IsABound(const absl::Status& status) {
  for (const char* text :
       {"too many views", "its tables may take", "tables of normalize and cast",
        "bytes of a row are too few"})
    if (status.message().find(text) != absl::string_view::npos) return true;
  return false;
}

// Expects agreement; returns true if the GPU computes it.
bool ExpectAgreement(const CheckedGraph& graph) {
  const absl::Status table = CheckDeviceForms(graph);
  const auto program = FusedProgram::Compile(graph);
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
    EXPECT_EQ(nvjpeg.ok(), !(*program)->has_partner() &&
                               !(*program)->has_own_sizes() &&
                               (*program)->FaultBytes(1) == 0)
        << nvjpeg << "\n"
        << CanonicalText(graph.graph);
  }
  return table.ok();
}

// Every way to give the operator its inputs, and each argument that may be per
// sample.
class AllWays {
 public:
  AllWays(const OperatorInfo& info, const Sources& sources)
      : info_(info), sources_(sources) {
    for (const ArgInfo& arg : info.args)
      if (!arg.default_value)
        if (std::optional<Value> value = Required(arg))
          node_.args[arg.name] = *std::move(value);
    node_.op = info.name;
    // Arguments that give all images the same size.
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
    if (info.name.starts_with("readers.") || info.name == "pack") continue;
    AllWays ways(info, sources);
    ways.Try();
    EXPECT_GT(ways.tried(), 0) << info.name << ": give it arguments that fit";
    if (ways.computed() == 0) never.insert(info.name);
  }
  // A second decode, beside that of the sources, is refused. A pack is stored.
  EXPECT_THAT(never,
              ::testing::ElementsAre("decode", "jpeg_compression_distortion",
                                     "peek_shape", "stored_bytes"));
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
    // The same after another row's value.
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

// If a chain cannot be extended by an operator, a stage begins there.
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

// An image, and one that a launch makes from it.
Graph Inverted() {
  Graph graph;
  graph.nodes = {{"readers.numpy", {}, {{"path", Word("/data")}}},
                 {"decode", {{0, 0}}, {}},
                 {"resize", {{1, 0}}, {{"size", Ints{40, 41}}}},
                 {"invert", {{2, 0}}, {}}};
  graph.outputs = {{"image", {3, 0}}};
  return graph;
}
uint32_t Add(Node node, Graph* graph) {
  graph->nodes.push_back(std::move(node));
  return static_cast<uint32_t>(graph->nodes.size() - 1);
}
// Adds `nodes` one after the other, the first one after `input`; the last is an
// output. Returns its node.
uint32_t AddChain(uint32_t input, std::vector<Node> nodes, Graph* graph) {
  for (Node& node : nodes) {
    node.inputs = {{input, 0}};
    input = Add(std::move(node), graph);
  }
  graph->outputs.push_back(
      {"f" + std::to_string(graph->outputs.size()), {input, 0}});
  return input;
}
bool AgreeOn(const Graph& graph) {
  const auto checked = Check(graph, kStored);
  EXPECT_TRUE(checked.ok()) << checked.status();
  return checked.ok() && ExpectAgreement(*checked);
}
bool DecoderMay(const Graph& graph) {
  EXPECT_TRUE(AgreeOn(graph));
  return CheckDecoderForms(*Check(graph, kStored)).ok();
}

// Within one pass there are no values between operators.
TEST(DeviceForms, AValueWithinAPassHasNoSizeOfItsOwn) {
  const Node resize{"resize", {}, {{"size", Ints{9, 8}}}};
  const Node part{"random_crop", {}, {}};
  const Node flip{"flip", {}, {}};
  const Node bright{"brightness", {}, {}};
  const auto may = [](const std::vector<Node>& nodes) {
    Graph graph = Inverted();
    AddChain(3, nodes, &graph);
    return DecoderMay(graph);
  };
  EXPECT_TRUE(may({part, resize}));
  EXPECT_TRUE(may({part, part, resize, flip}));
  EXPECT_FALSE(may({part, flip, resize}));
  EXPECT_FALSE(may({resize, part, resize}));
  EXPECT_FALSE(may({part, bright, resize}));
  EXPECT_TRUE(may({resize, bright, part, resize}));
  // A node with a second user is a separate value.
  Graph twice = Inverted();
  const uint32_t crop = Add({"random_crop", {{3, 0}}, {}}, &twice);
  AddChain(crop, {resize}, &twice);
  EXPECT_TRUE(DecoderMay(twice));
  AddChain(crop, {bright, resize}, &twice);
  EXPECT_FALSE(DecoderMay(twice));
  Graph seen = Inverted();
  const uint32_t small = AddChain(3, {resize}, &seen);
  AddChain(small, {part, resize}, &seen);
  EXPECT_TRUE(DecoderMay(seen));
  // The fused kernel makes a view of a decoded image, not its parts.
  Graph views = Inverted();
  AddChain(1, {part, resize}, &views);
  EXPECT_TRUE(DecoderMay(views));
  AddChain(1, {part, flip, resize}, &views);
  EXPECT_FALSE(DecoderMay(views));
}

TEST(DeviceForms, BoundsAreTheCompilers) {
  for (const int64_t classes : {4096, 4097}) {  // of 4 bytes
    Graph graph = Inverted();
    graph.outputs.push_back(
        {"label",
         {Add({"one_hot", {{0, 1}}, {{"num_classes", Value(classes)}}}, &graph),
          0}});
    EXPECT_EQ(AgreeOn(graph), classes == 4096);
  }
}

TEST(DeviceForms, PatternsAreBoundedInBytes) {
  for (const int64_t width : {256, 257})
    for (const char* dtype : {"float32", "uint8"}) {
      const Floats pattern(static_cast<size_t>(4 * width), 7);
      const bool fits = width == 256 || dtype[0] == 'u';
      for (const Node& node : {Node{"erase",
                                    {},
                                    {{"shape", Floats{1}},
                                     {"axes", Ints{0}},
                                     {"fill_value", pattern}}},
                               Node{"slice",
                                    {},
                                    {{"axes", Ints{0}},
                                     {"start", Ints{0}},
                                     {"shape", Ints{9}},
                                     {"out_of_bounds_policy", Word("pad")},
                                     {"fill_values", pattern}}}}) {
        Graph graph = Inverted();
        AddChain(3,
                 {{"resize", {}, {{"size", Ints{4, width}}}},
                  {"cast", {}, {{"dtype", Word(dtype)}}},
                  {"reshape", {}, {{"shape", Ints{3, 4 * width}}}},
                  node},
                 &graph);
        EXPECT_EQ(AgreeOn(graph), fits) << node.op << width << dtype;
      }
      Graph host = Inverted();
      AddChain(Add({"constant",
                    {},
                    {{"values", Floats(static_cast<size_t>(4 * width), 7)},
                     {"shape", Ints{1, 4 * width}},
                     {"dtype", Word(dtype)}}},
                   &host),
               {{"erase",
                 {},
                 {{"shape", Floats{1}},
                  {"axes", Ints{0}},
                  {"fill_value", pattern}}}},
               &host);
      // The host holds 4,112 bytes.
      EXPECT_TRUE(AgreeOn(host));
    }
}

TEST(DeviceForms, StoredValuesAreNoPixels) {
  Graph graph = Inverted();
  graph.outputs.push_back({"stored", {0, 3}});
  EXPECT_FALSE(AgreeOn(graph));
  // This row decodes another row's image.
  Graph partner;
  partner.nodes = {{"readers.numpy", {}, {{"path", Word("/data")}}},
                   {"partner", {{0, 0}}, {}},
                   {"decode", {{1, 0}}, {}},
                   {"resize", {{2, 0}}, {{"size", Ints{8, 9}}}}};
  partner.outputs = {{"image", {3, 0}}};
  EXPECT_FALSE(AgreeOn(partner));
  // Kernels make views of any value.
  Graph constant = Inverted();
  AddChain(Add({"constant",
                {},
                {{"values", Floats(5 * 4 * 3, 7)},
                 {"shape", Ints{5, 4, 3}},
                 {"dtype", Word("uint8")}}},
               &constant),
           {{"random_crop", {}, {}},
            {"brightness", {}, {}},
            {"resize", {}, {{"size", Ints{8, 9}}}}},
           &constant);
  EXPECT_TRUE(AgreeOn(constant));
}

}  // namespace
}  // namespace leat::worker
