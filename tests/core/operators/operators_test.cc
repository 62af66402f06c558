// SPDX-License-Identifier: Apache-2.0
#include "core/pipeline/operators.h"

#include <limits>

#include "core/status.h"
#include "core/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/pipeline/graph_support.h"

namespace leat {
namespace {

using ::testing::AllOf;
using testing::ErrorOf;
using ::testing::HasSubstr;
using testing::Text;
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

Node Reader() {
  return {"readers.image_folder", {}, {{"path", Value(std::string("/data"))}}};
}

// Nodes: 0 reader, 1 decode, 2 coin_flip, 3 random_resized_crop, 4 flip.
Graph Train() {
  Graph graph;
  graph.nodes = {Reader(),
                 {"decode", {{0, 0}}, {}},
                 {"coin_flip", {}, {}},
                 {"random_resized_crop", {{1, 0}}, {{"size", Ints{224}}}},
                 {"flip", {{3, 0}}, {{"horizontal", NodeRef{2, 0}}}}};
  graph.outputs = {{"image", {4, 0}}, {"label", {0, 1}}};
  return graph;
}

// Reader, decode, and `last` on the decoded image, whose result is the output.
Graph Ending(Node last) {
  Graph graph;
  last.inputs = {{1, 0}};
  graph.nodes = {Reader(), {"decode", {{0, 0}}, {}}, std::move(last)};
  graph.outputs = {{"x", {2, 0}}};
  return graph;
}

TEST(Operators, EveryOneIsFoundByItsName) {
  for (const OperatorInfo& info : AllOperators()) {
    EXPECT_EQ(FindOperator(info.name), &info);
    EXPECT_FALSE(info.doc.empty());
    for (const ArgInfo& arg : info.args) EXPECT_FALSE(arg.doc.empty());
  }
  EXPECT_EQ(FindOperator("no_such"), nullptr);
}

TEST(Check, CompletesTheTrainingPipeline) {
  const auto checked = Check(Train());
  ASSERT_TRUE(checked.ok()) << Message(checked.status());
  ASSERT_EQ(checked->schema.fields.size(), 2u);
  EXPECT_EQ(checked->schema.fields[0],
            (Field{"image", DType::kUint8, {224, 224, 3}, 150528}));
  EXPECT_EQ(checked->schema.fields[1], (Field{"label", DType::kInt32, {}, 4}));
  const auto& args = checked->graph.nodes[3].args;
  EXPECT_EQ(args.at("size"), Value(Ints{224, 224}));
  EXPECT_EQ(args.at("area"), Value(Floats{0.08, 1.0}));
  EXPECT_EQ(args.at("antialias"), Value(true));
  EXPECT_EQ(checked->types[1][0],
            (ValueType{ValueType::Kind::kTensor, DType::kUint8, {-1, -1, 3}}));
}

TEST(Check, IsIdempotent) {
  const auto once = Check(Train());
  ASSERT_TRUE(once.ok());
  const auto twice = Check(once->graph);
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(once->graph, twice->graph);
  EXPECT_EQ(CanonicalText(once->graph), CanonicalText(twice->graph));
}

TEST(Check, DropsUnusedNodesAndRenumbersTheRest) {
  Graph graph = Train();
  graph.nodes.insert(graph.nodes.begin() + 1, Node{"uniform", {}, {}});
  for (Node& node : graph.nodes)
    for (NodeRef& ref : node.inputs) ref.node += ref.node >= 1;
  graph.nodes[5].args["horizontal"] = NodeRef{3, 0};
  graph.outputs[0].second.node = 5;
  const auto with = Check(graph), without = Check(Train());
  ASSERT_TRUE(with.ok()) << Message(with.status());
  EXPECT_EQ(with->graph, without->graph);
  EXPECT_EQ(with->types, without->types);
}

TEST(Check, KeepsAReaderThatNothingUses) {
  Graph graph;
  graph.nodes = {{"uniform", {}, {}}, Reader()};
  graph.outputs = {{"u", {0, 0}}};
  const auto checked = Check(graph);
  ASSERT_TRUE(checked.ok());
  EXPECT_EQ(checked->reader, 1u);
}

TEST(Check, PutsNumbersInTheirArgumentsType) {
  Graph graph = Ending({"random_resized_crop",
                        {},
                        {{"size", Value(int64_t{32})},
                         {"area", Ints{1, 1}},
                         {"attempts", Value(5.0)},
                         {"antialias", Value(int64_t{0})}}});
  const auto checked = Check(graph);
  ASSERT_TRUE(checked.ok()) << Message(checked.status());
  const auto& args = checked->graph.nodes[2].args;
  EXPECT_EQ(args.at("size"), Value(Ints{32, 32}));
  EXPECT_EQ(args.at("area"), Value(Floats{1, 1}));
  EXPECT_EQ(args.at("attempts"), Value(int64_t{5}));
  EXPECT_EQ(args.at("antialias"), Value(false));
}

TEST(Check, NamesTheNearestOperatorAndArgument) {
  Graph graph = Train();
  graph.nodes[3].op = "random_resize_crop";
  EXPECT_THAT(ErrorOf(graph),
              AllOf(HasSubstr("node 3"), HasSubstr("random_resize_crop"),
                    HasSubstr("did you mean \"random_resized_crop\"?")));
  graph = Train();
  graph.nodes[3].args["sise"] = Ints{3};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("did you mean \"size\"?"));
  graph = Train();
  graph.nodes[1].op = "qqqqqqqqqqqqqqq";
  EXPECT_THAT(ErrorOf(graph), HasSubstr("known are readers.image_folder"));
  graph.nodes[1].op = std::string(1000, 'q');  // near to none, too
  EXPECT_THAT(ErrorOf(graph), HasSubstr("known are readers.image_folder"));
}

TEST(Check, CutsALongNameBetweenCharacters) {
  for (size_t before = 57; before < 61; ++before) {
    Graph graph = Train();
    graph.nodes[1].op = std::string(before, 'q') + "ééé";
    EXPECT_TRUE(IsUtf8(ErrorOf(graph))) << before;
    graph = Train();
    graph.nodes[0] = {"readers.array_record",
                      {},
                      {{"paths", std::vector<std::string>{"/a"}},
                       {"type", std::string(before, 'q') + "ééé"}}};
    EXPECT_TRUE(IsUtf8(ErrorOf(graph))) << before;
  }
}

TEST(Check, ReadersOfFilesRefuseWhatNamesNoFiles) {
  using Texts = std::vector<std::string>;
  const auto graph = [](Node reader) {
    Graph graph;
    graph.nodes = {std::move(reader)};
    graph.outputs = {{"label", {0, 1}}};
    return graph;
  };
  const auto files = [&](Texts names, Ints labels) {
    return graph({"readers.files", {}, {{"files", names}, {"labels", labels}}});
  };
  EXPECT_TRUE(Check(files({"a", "b"}, {})).ok());
  EXPECT_TRUE(Check(files({"a", "b"}, {2147483647, 0})).ok());
  EXPECT_THAT(ErrorOf(files({"a", "b"}, {1})),
              HasSubstr("\"labels\": 1 label for 2 files"));
  EXPECT_THAT(ErrorOf(files({"a"}, {-1})), HasSubstr("labels"));
  EXPECT_THAT(ErrorOf(files({}, {})), HasSubstr("files"));
  EXPECT_THAT(ErrorOf(graph(
                  {"readers.file_list", {}, {{"path", Value(std::string())}}})),
              HasSubstr("path"));
}

TEST(Check, SaysWhatIsWrongWithAnArgument) {
  const auto error = [](const char* op, const char* name, Value value) {
    Node node{op, {}, {{name, std::move(value)}}};
    if (node.op == "crop") node.args["size"] = Ints{3};
    return ErrorOf(Ending(node));
  };
  EXPECT_THAT(error("resize", "size", Ints{-5, 3}),
              AllOf(HasSubstr("\"size\""), HasSubstr("-5"),
                    HasSubstr("want integers 0 to 65500")));
  EXPECT_THAT(error("random_resized_crop", "size", Ints{}),
              HasSubstr("0 values"));
  EXPECT_THAT(error("random_resized_crop", "size", Ints{1, 2, 3}),
              HasSubstr("3 numbers"));
  EXPECT_THAT(error("random_resized_crop", "size", Floats{1.5}),
              HasSubstr("1.5"));
  EXPECT_THAT(error("random_resized_crop", "size", std::string("big")),
              HasSubstr("big"));
  EXPECT_THAT(error("flip", "horizontal", Value(int64_t{2})),
              HasSubstr("want true or false"));
  EXPECT_THAT(error("crop", "pos_x", Value(1.5)), HasSubstr("0 to 1"));
  EXPECT_THAT(
      error("crop", "pos_x", Value(std::numeric_limits<double>::quiet_NaN())),
      HasSubstr("nan"));
  EXPECT_THAT(error("cast", "dtype", std::string("float3")),
              HasSubstr("did you mean \"float32\"?"));
  EXPECT_THAT(ErrorOf(Ending({"crop", {}, {}})), HasSubstr("missing"));
}

TEST(Check, ChecksRelationsBetweenNumbers) {
  const auto with = [](const char* name, Value value) {
    Graph graph = Train();
    graph.nodes[3].args[name] = std::move(value);
    return ErrorOf(graph);
  };
  EXPECT_THAT(with("area", Floats{0.5, 0.1}), HasSubstr("least, largest"));
  EXPECT_THAT(with("area", Floats{0.0, 1.0}), HasSubstr("area"));
  EXPECT_THAT(with("aspect", Floats{1.0}), HasSubstr("least, largest"));
  Graph graph;
  graph.nodes = {Reader(), {"uniform", {}, {{"low", 2.0}, {"high", 1.0}}}};
  graph.outputs = {{"u", {1, 0}}};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("want low < high"));
}

TEST(Check, RefusesWrongReferences) {
  Graph graph = Train();
  graph.nodes[1].inputs[0] = {1, 0};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("earlier"));
  graph = Train();
  graph.nodes[1].inputs[0] = {4'000'000'000u, 0};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("4000000000"));
  graph = Train();
  graph.nodes[1].inputs[0] = {0, 2};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("which has 2"));
  graph = Train();
  graph.nodes[1].inputs[0] = {0, 1};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("int32 scalar"));
  graph = Train();
  graph.nodes[1].inputs.clear();
  EXPECT_THAT(ErrorOf(graph), HasSubstr("has 0 inputs, want 1"));
  graph = Train();
  graph.nodes[4].args["horizontal"] = NodeRef{0, 1};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("want a bool scalar"));
  graph = Train();
  graph.nodes[3].args["size"] = NodeRef{0, 1};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("want a constant"));
  graph = Train();
  graph.outputs[0].second = {9, 0};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("output \"image\""));
}

TEST(Check, WantsOneReader) {
  Graph graph = Train();
  graph.nodes.push_back(Reader());
  EXPECT_THAT(ErrorOf(graph), HasSubstr("both readers"));
  graph.nodes = {{"uniform", {}, {}}};
  graph.outputs = {{"u", {0, 0}}};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("no reader"));
}

TEST(Check, ChecksOutputs) {
  Graph graph = Train();
  graph.outputs = {};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("0 outputs"));
  graph.outputs = {{"a", {4, 0}}, {"a", {0, 1}}};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("two outputs"));
  graph.outputs = {{"", {4, 0}}};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("0 bytes"));
  graph.outputs = {{"a", {0, 0}}};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("encoded"));
  graph.outputs = {{"a", {1, 0}}};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("differs from sample to sample"));
  EXPECT_THAT(ErrorOf(Ending({"resize", {}, {{"size", Ints{65500}}}})),
              HasSubstr("bytes a row"));
  EXPECT_THAT(ErrorOf(Graph{}), HasSubstr("0 nodes"));
  graph = Train();
  graph.nodes.resize(1001, graph.nodes[2]);
  EXPECT_THAT(ErrorOf(graph), HasSubstr("1001 nodes"));
}

TEST(Check, InfersShapesExactly) {
  Graph graph = Ending({"crop", {}, {{"size", Ints{300, 401}}}});
  graph.nodes.push_back(
      {"resize",
       {{2, 0}},
       {{"size", Ints{100}}, {"mode", Value(std::string("not_smaller"))}}});
  graph.nodes.push_back({"normalize",
                         {{3, 0}},
                         {{"mean", Floats{1, 2, 3}}, {"std", Value(2.0)}}});
  graph.nodes.push_back({"transpose", {{4, 0}}, {{"perm", Ints{2, 0, 1}}}});
  graph.nodes.push_back(
      {"cast", {{5, 0}}, {{"dtype", Value(std::string("float16"))}}});
  graph.outputs = {{"x", {6, 0}}, {"y", {4, 0}}};
  const auto checked = Check(graph);
  ASSERT_TRUE(checked.ok()) << Message(checked.status());
  EXPECT_EQ(checked->schema.fields[0],
            (Field{"x", DType::kFloat16, {3, 100, 134}, 2 * 3 * 100 * 134}));
  EXPECT_EQ(checked->schema.fields[1].shape, (Shape{100, 134, 3}));

  graph.nodes[2].args["size"] = Ints{20, 20};
  graph.nodes.insert(graph.nodes.begin() + 3,
                     {"crop", {{2, 0}}, {{"size", Ints{21, 20}}}});
  EXPECT_THAT(ErrorOf(graph), HasSubstr("larger than the image"));
}

TEST(Check, RefusesOperatorsOnTheWrongThing) {
  Graph graph = Train();
  graph.nodes.push_back({"transpose", {{4, 0}}, {{"perm", Ints{2, 0, 1}}}});
  graph.nodes.push_back({"flip", {{5, 0}}, {}});
  graph.outputs = {{"x", {6, 0}}};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("want an image"));
  graph.nodes[5].args["perm"] = Ints{2, 0, 0};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("permutation"));
  graph.nodes[5] = {"cast", {{4, 0}}, {{"dtype", std::string("float32")}}};
  graph.nodes[6] = {"resize", {{5, 0}}, {{"size", Ints{3}}}};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("want uint8"));
  graph.nodes[6] = {"flip", {{0, 0}}, {}};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("put a decode before it"));
  graph.nodes[6] = {
      "normalize", {{4, 0}}, {{"mean", Floats{1, 2}}, {"std", Floats{1}}}};
  EXPECT_THAT(ErrorOf(graph), HasSubstr("want 1 or 3"));
}

// --- decode(reduce="auto") ---------------------------------------------------

// Reader, a reduced decode, and operators after it.
Graph Reducing(std::vector<Node> last, uint32_t output = 0) {
  Graph graph;
  graph.nodes = {Reader(), {"decode", {{0, 0}}, {{"reduce", Text("auto")}}}};
  for (Node& node : last) graph.nodes.push_back(std::move(node));
  if (output == 0) output = static_cast<uint32_t>(graph.nodes.size()) - 1;
  graph.outputs = {{"x", {output, 0}}};
  return graph;
}

TEST(Reduction, GoesByOperatorsOfPlaceToOneResize) {
  const Node resize{"resize", {{1, 0}}, {{"size", Ints{8}}}};
  const Node crop{"crop", {{1, 0}}, {{"size", Ints{30}}}};
  const Node of_crop{"random_resized_crop", {{2, 0}}, {{"size", Ints{8}}}};
  const Node flip{"flip", {{2, 0}}, {}};
  // After the resize any operator is allowed.
  const Node blur{"gaussian_blur", {{2, 0}}, {{"sigma", 1.0}}};
  for (const Graph& graph :
       {Reducing({resize}), Reducing({crop, of_crop}), Reducing({resize, flip}),
        Reducing({resize, blur})})
    EXPECT_TRUE(Check(graph).ok()) << Check(graph).status();
  // A node that no output needs causes no error.
  EXPECT_TRUE(Check(Reducing({resize, {"invert", {{1, 0}}, {}}}, 2)).ok());
}

TEST(Reduction, ValuesAreNamed) {
  Graph graph = Reducing({{"resize", {{1, 0}}, {{"size", Ints{8}}}}});
  graph.nodes[1].args["reduce"] = Text("half");
  EXPECT_THAT(ErrorOf(graph),
              AllOf(HasSubstr("node 1 (decode): argument \"reduce\""),
                    HasSubstr("half"), HasSubstr("none"), HasSubstr("auto")));
}

TEST(Reduction, SaysWhatIsInItsWay) {
  const Node resize{"resize", {{2, 0}}, {{"size", Ints{8}}}};
  const auto end = HasSubstr(
      "want its image to go to one resize or random_resized_crop, with nothing "
      "but crop, random_crop and window between them, or reduce=\"none\"");
  EXPECT_THAT(
      ErrorOf(
          Reducing({{"gaussian_blur", {{1, 0}}, {{"sigma", 1.0}}}, resize})),
      AllOf(HasSubstr("node 1 (decode): argument \"reduce\" is \"auto\", but "
                      "node 2 (gaussian_blur) looks at its pixels before a "
                      "resize"),
            end));
  EXPECT_THAT(ErrorOf(Reducing({{"flip", {{1, 0}}, {}}, resize})),
              AllOf(HasSubstr("node 2 (flip) mirrors its image before a "
                              "resize: put the flip behind the resize"),
                    end));
  EXPECT_THAT(
      ErrorOf(Reducing({{"crop", {{1, 0}}, {{"size", Ints{8}}}}})),
      AllOf(HasSubstr("output \"x\" is its image before a resize"), end));
  Graph two =
      Reducing({{"resize", {{1, 0}}, {{"size", Ints{8}}}},
                {"random_resized_crop", {{1, 0}}, {{"size", Ints{9}}}}});
  two.outputs.push_back({"y", {2, 0}});
  EXPECT_THAT(
      ErrorOf(two),
      AllOf(HasSubstr("node 2 (resize) and node 3 (random_resized_crop) both "
                      "take its image, and each may need another scale"),
            end));
}

}  // namespace
}  // namespace leat
