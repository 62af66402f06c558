// SPDX-License-Identifier: Apache-2.0
#include "core/pipeline/epilogue.h"

#include <cmath>
#include <cstring>

#include "core/status.h"
#include "core/tensor/pointwise.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/pipeline/graph_support.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Text;
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

Node Cast(const char* dtype) { return {"cast", {}, {{"dtype", Text(dtype)}}}; }
Node Transpose(Ints perm) { return {"transpose", {}, {{"perm", perm}}}; }
Node Normalize(Floats mean, const char* dtype = "float32") {
  return {"normalize",
          {},
          {{"mean", mean}, {"std", Floats{2}}, {"dtype", Text(dtype)}}};
}

// Reader, decode, a 6 × 5 image (node 2), and then `tail`.
Graph ChainOf(std::vector<Node> tail) {
  Graph graph;
  graph.nodes = {{"readers.image_folder", {}, {{"path", Text("/data")}}},
                 {"decode", {{0, 0}}, {}},
                 {"resize", {{1, 0}}, {{"size", Ints{6, 5}}}}};
  for (Node& node : tail) {
    node.inputs = {{static_cast<uint32_t>(graph.nodes.size()) - 1, 0}};
    graph.nodes.push_back(std::move(node));
  }
  graph.outputs = {
      {"image", {static_cast<uint32_t>(graph.nodes.size()) - 1, 0}},
      {"label", {0, 1}}};
  return graph;
}

SplitGraph Split(const Graph& graph) {
  const auto checked = Check(graph);
  EXPECT_TRUE(checked.ok()) << checked.status();
  return SplitEpilogue(*checked);
}

template <class T>
T At(const FieldEpilogue& epilogue, size_t index) {
  T value;
  std::memcpy(&value, epilogue.table.data() + index * sizeof(T), sizeof value);
  return value;
}

TEST(SplitEpilogue, LeavesNormalizeCastAndTransposeToTheDevice) {
  const SplitGraph split = Split(ChainOf(
      {Normalize({10, 20, 30}), Transpose({2, 0, 1}), Cast("float16")}));
  ASSERT_EQ(split.head.schema.fields.size(), 2u);
  const Field& image = split.head.schema.fields[0];
  EXPECT_EQ(image.name, "image");
  EXPECT_EQ(image.dtype, DType::kUint8);
  EXPECT_THAT(image.shape, ElementsAre(6, 5, 3));
  EXPECT_EQ(image.row_bytes, 90u);
  EXPECT_EQ(split.head.graph.nodes.size(), 3u);
  EXPECT_EQ(split.head.types.size(), 3u);
  EXPECT_EQ(split.head.graph.outputs[0].second, (NodeRef{2, 0}));
  ASSERT_TRUE(split.epilogue[0].has_value());
  EXPECT_FALSE(split.epilogue[1].has_value());
  const FieldEpilogue& epilogue = *split.epilogue[0];
  EXPECT_EQ(epilogue.dtype, DType::kFloat16);
  EXPECT_EQ(epilogue.channels, 3u);
  EXPECT_THAT(epilogue.perm, ElementsAre(2, 0, 1));
  ASSERT_EQ(epilogue.table.size(), 256u * 3 * 2);
  for (int byte = 0; byte < 256; ++byte)
    for (int c = 0; c < 3; ++c)
      ASSERT_EQ(FloatOfHalf(
                    At<uint16_t>(epilogue, static_cast<size_t>(byte * 3 + c))),
                static_cast<float>(byte - 10 * (c + 1)) / 2);
}

TEST(SplitEpilogue, ChangesNothingWhereThereIsNoEnd) {
  const Graph graph = ChainOf({});
  const SplitGraph split = Split(graph);
  EXPECT_FALSE(split.epilogue[0].has_value());
  EXPECT_EQ(split.head.graph, Check(graph)->graph);
  EXPECT_EQ(split.head.schema, Check(graph)->schema);
}

TEST(SplitEpilogue, OneNumberForAllChannelsIsOneColumn) {
  const SplitGraph split = Split(ChainOf({Normalize({1})}));
  EXPECT_EQ(split.epilogue[0]->channels, 1u);
  EXPECT_EQ(At<float>(*split.epilogue[0], 5), 2.0f);
  EXPECT_THAT(split.epilogue[0]->perm, IsEmpty());
}

TEST(SplitEpilogue, BytesThatStayAreNoTable) {
  const SplitGraph turned = Split(ChainOf({Transpose({2, 0, 1})}));
  EXPECT_THAT(turned.epilogue[0]->table, IsEmpty());
  EXPECT_EQ(turned.epilogue[0]->dtype, DType::kUint8);
  EXPECT_THAT(turned.epilogue[0]->perm, ElementsAre(2, 0, 1));
  EXPECT_THAT(turned.head.schema.fields[0].shape, ElementsAre(6, 5, 3));
  // Conversions to a type that holds every byte and back cancel out.
  const SplitGraph none = Split(ChainOf({Cast("int32"), Transpose({1, 0, 2}),
                                         Transpose({1, 0, 2}), Cast("uint8")}));
  EXPECT_FALSE(none.epilogue[0].has_value());
  EXPECT_EQ(none.head.graph.nodes.size(), 3u);
}

TEST(SplitEpilogue, PermutationsCompose) {
  const SplitGraph split =
      Split(ChainOf({Transpose({2, 0, 1}), Transpose({1, 0, 2})}));
  EXPECT_THAT(split.epilogue[0]->perm, ElementsAre(0, 2, 1));
}

TEST(SplitEpilogue, ALongChainIsStillOneTable) {
  // To bytes and further: rounded, saturated, and then a bool.
  const SplitGraph split =
      Split(ChainOf({Normalize({100}), Cast("uint8"), Normalize({4}, "float16"),
                     Cast("int64"), Cast("bool")}));
  const FieldEpilogue& epilogue = *split.epilogue[0];
  EXPECT_EQ(epilogue.dtype, DType::kBool);
  ASSERT_EQ(epilogue.table.size(), 256u);
  for (int byte = 0; byte < 256; ++byte) {
    const double first = std::max(0.0, std::nearbyint((byte - 100) / 2.0));
    ASSERT_EQ(epilogue.table[static_cast<size_t>(byte)],
              std::byte{std::nearbyint((first - 4) / 2) != 0})
        << byte;
  }
}

TEST(SplitEpilogue, ChannelsOnAnotherAxisMoveTheHead) {
  // A 6 × 3 × 4 image transposed so that its width becomes normalize's
  // channels.
  Graph graph = ChainOf({Transpose({2, 0, 1}), Normalize({1, 2, 3})});
  graph.nodes[2].args["size"] = Ints{6, 3};
  const SplitGraph split = Split(graph);
  const Field& image = split.head.schema.fields[0];
  EXPECT_THAT(image.shape, ElementsAre(3, 6, 3));
  EXPECT_EQ(split.head.graph.outputs[0].second, (NodeRef{3, 0}));
  EXPECT_EQ(split.epilogue[0]->channels, 3u);
  EXPECT_THAT(split.epilogue[0]->perm, IsEmpty());
  // No uint8 value has the channels last: nothing is left to the consumer.
  Graph stuck =
      ChainOf({Cast("float32"), Transpose({2, 0, 1}), Normalize({1, 2, 3})});
  stuck.nodes[2].args["size"] = Ints{6, 3};
  const SplitGraph whole = Split(stuck);
  EXPECT_FALSE(whole.epilogue[0].has_value());
  EXPECT_EQ(whole.head.schema, Check(stuck)->schema);
}

TEST(SplitEpilogue, ValuesThatAreNoBytesStay) {
  Graph graph = ChainOf({});
  graph.nodes.push_back(Cast("float32"));
  graph.nodes.back().inputs = {{0, 1}};
  graph.outputs[1].second = {3, 0};
  EXPECT_FALSE(Split(graph).epilogue[1].has_value());
  // A value that is cast to a byte in between may be sent as one.
  graph.nodes[3].args["dtype"] = Text("uint8");
  graph.nodes.push_back(Cast("int64"));
  graph.nodes.back().inputs = {{3, 0}};
  graph.outputs[1].second = {4, 0};
  const SplitGraph split = Split(graph);
  EXPECT_EQ(split.epilogue[1]->dtype, DType::kInt64);
  EXPECT_EQ(At<int64_t>(*split.epilogue[1], 200), 200);
  EXPECT_EQ(split.head.schema.fields[1].row_bytes, 1u);
}

TEST(SplitEpilogue, FieldsOfOneValueAreSplitEach) {
  Graph graph = ChainOf({Normalize({1}), Transpose({2, 0, 1})});
  graph.outputs.push_back({"raw", {2, 0}});
  graph.outputs.push_back({"floats", {3, 0}});
  const SplitGraph split = Split(graph);
  EXPECT_TRUE(split.epilogue[0].has_value());
  EXPECT_FALSE(split.epilogue[2].has_value());
  EXPECT_TRUE(split.epilogue[3].has_value());
  for (const size_t field : {0, 2, 3})
    EXPECT_EQ(split.head.graph.outputs[field].second, (NodeRef{2, 0}));
  EXPECT_EQ(split.head.schema.row_bytes(), 3u * 90 + 4);
}

TEST(SplitEpilogue, NodesKeepTheirNumbers) {
  // normalize (3) precedes the coin and the flip.
  Graph graph = ChainOf({Normalize({1, 2, 3})});
  graph.nodes.push_back({"coin_flip", {}, {}});
  graph.nodes.push_back({"flip", {{2, 0}}, {{"horizontal", NodeRef{4, 0}}}});
  graph.outputs.push_back({"flipped", {5, 0}});
  const auto checked = Check(graph);
  const SplitGraph split = SplitEpilogue(*checked);
  ASSERT_EQ(split.head.graph.nodes.size(), 6u);
  for (const size_t node : {0, 1, 2, 4, 5})
    EXPECT_EQ(split.head.graph.nodes[node], checked->graph.nodes[node]);
  EXPECT_EQ(split.head.graph.nodes[3].op, "coin_flip");
  EXPECT_EQ(
      split.head.types[3],
      (std::vector<ValueType>{{ValueType::Kind::kTensor, DType::kBool, {}}}));
  EXPECT_EQ(split.head.reader, checked->reader);
  // It is also valid as a pipeline of its own.
  EXPECT_TRUE(Check(split.head.graph).ok());
}

TEST(Epilogue, IsReadFromTheWire) {
  EXPECT_EQ(*EpilogueFromWire(0), Epilogue::kWorker);
  EXPECT_EQ(*EpilogueFromWire(1), Epilogue::kWorker);
  EXPECT_EQ(*EpilogueFromWire(2), Epilogue::kDevice);
  for (const int value : {-1, 3, 1 << 30}) {
    const absl::Status status = EpilogueFromWire(value).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(Message(status)),
                ::testing::HasSubstr("want 1 (worker) or 2 (device)"));
  }
}

}  // namespace
}  // namespace leat
