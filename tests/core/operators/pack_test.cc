// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using PackArgs = std::map<std::string, Value>;

ValueType PackedTensor(DType dtype, Shape shape) {
  return {ValueType::Kind::kTensor, dtype, std::move(shape)};
}

const ValueType kTokens = PackedTensor(DType::kInt32, {-1});
const ValueType kMask = PackedTensor(DType::kUint8, {-1, 2});

Node PackedReader() {
  return {"readers.numpy", {}, {{"path", Value(std::string("/none"))}}};
}

Node Pack(PackArgs args, std::vector<NodeRef> inputs = {{0, 0}}) {
  return {"pack", std::move(inputs), std::move(args)};
}

// Tokens, segment_ids and positions of a pack of the reader's first output.
absl::StatusOr<CheckedGraph> CheckPack(PackArgs args,
                                       const ValueType& stored = kTokens) {
  Graph graph{{PackedReader(), Pack(std::move(args))},
              {{"tokens", {1, 0}}, {"segment_ids", {1, 1}}, {"at", {1, 2}}}};
  return Check(graph, std::vector<ValueType>{stored});
}

std::string PackError(const absl::StatusOr<CheckedGraph>& checked) {
  return std::string(Message(checked.status()));
}

TEST(Pack, RowsHaveOneLengthAndTwoMoreFields) {
  const auto checked = CheckPack({{"length", Value(int64_t{8})}});
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->reader, 0u);
  EXPECT_EQ(checked->stored, 1u);
  EXPECT_THAT(checked->types[1], ElementsAre(PackedTensor(DType::kInt32, {8}),
                                             PackedTensor(DType::kInt32, {8}),
                                             PackedTensor(DType::kInt32, {8})));
}

TEST(Pack, TakesTypesThatAreOnlyCarried) {
  const auto checked = CheckPack({{"length", Value(int64_t{8})}},
                                 PackedTensor(DType::kUint16, {-1}));
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->types[1][0], PackedTensor(DType::kUint16, {8}));
}

TEST(Pack, SeveralValuesArePackedAlike) {
  Graph graph{{PackedReader(),
               Pack({{"length", Value(int64_t{8})},
                     {"fill_values", Value(std::vector<double>{50256, 0})}},
                    {{0, 1}, {0, 0}})},
              {{"mask", {1, 0}}, {"tokens", {1, 1}}, {"at", {1, 3}}}};
  const std::vector<ValueType> stored = {kTokens, kMask};
  auto checked = Check(graph, stored);
  EXPECT_THAT(
      PackError(checked),
      HasSubstr("\"fill_values\" has 50256 for input 0, want a value of "
                "uint8"));
  std::swap(graph.nodes[1].inputs[0], graph.nodes[1].inputs[1]);
  checked = Check(graph, stored);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_THAT(checked->types[1],
              ElementsAre(PackedTensor(DType::kInt32, {8}),
                          PackedTensor(DType::kUint8, {8, 2}),
                          PackedTensor(DType::kInt32, {8}),
                          PackedTensor(DType::kInt32, {8})));
}

TEST(Pack, RefusesArgumentsThatDoNotFit) {
  EXPECT_THAT(PackError(CheckPack({})), HasSubstr("\"length\" is missing"));
  EXPECT_THAT(PackError(CheckPack({{"length", Value(int64_t{4})},
                                   {"overlap", Value(int64_t{4})}})),
              HasSubstr("overlap is 4: want less than length, which is 4"));
  EXPECT_THAT(PackError(CheckPack({{"length", Value(int64_t{4})},
                                   {"longer", Value(std::string("drop"))}})),
              HasSubstr("longer is drop, but how=cut cuts every document"));
  EXPECT_THAT(
      PackError(CheckPack({{"length", Value(int64_t{4})},
                           {"fill_values", Value(std::vector<double>{1, 2})}})),
      HasSubstr("\"fill_values\" has 2 numbers, want 1, or 1"));
}

TEST(Pack, RefusesValuesOfOneSizeAndOfSeveralOpenSizes) {
  const auto error = [](ValueType stored) {
    return PackError(CheckPack({{"length", Value(int64_t{8})}}, stored));
  };
  EXPECT_THAT(error(PackedTensor(DType::kInt32, {7})), HasSubstr("input 0 is"));
  EXPECT_THAT(error(PackedTensor(DType::kInt32, {-1, -1})),
              HasSubstr("whose first size alone differs"));
  EXPECT_THAT(error(PackedTensor(DType::kInt32, {})), HasSubstr("input 0 is"));
  EXPECT_THAT(error({ValueType::Kind::kEncoded}), HasSubstr("want a tensor"));
  EXPECT_THAT(error(PackedTensor(DType::kInt32, {-1, 1 << 22})),
              HasSubstr("rows of length=8 have over 67108864 bytes"));
}

TEST(Pack, IsTheOnlyUserOfTheReader) {
  const auto check = [](Graph graph) {
    return PackError(Check(graph, std::vector<ValueType>{kTokens}));
  };
  const PackArgs length = {{"length", Value(int64_t{8})}};
  EXPECT_THAT(check({{PackedReader(), Pack(length)},
                     {{"tokens", {1, 0}}, {"raw", {0, 0}}}}),
              HasSubstr("output \"raw\" uses an output of the reader, and so "
                        "does the pack (node 1)"));
  EXPECT_THAT(check({{PackedReader(), Pack(length), {"length", {{0, 0}}, {}}},
                     {{"tokens", {1, 0}}, {"n", {2, 0}}}}),
              HasSubstr("node 2 (length) uses an output of the reader"));
  EXPECT_THAT(
      check({{PackedReader(),
              {"cast", {{0, 0}}, {{"dtype", Value(std::string("int64"))}}},
              Pack(length, {{1, 0}})},
             {{"tokens", {2, 0}}}}),
      HasSubstr("node 2 (pack): an input is the output of another "
                "operator"));
  EXPECT_THAT(check({{PackedReader(), Pack(length), Pack(length)},
                     {{"a", {1, 0}}, {"b", {2, 0}}}}),
              HasSubstr("node 2 (pack): a second pack"));
  EXPECT_THAT(check({{PackedReader(), Pack(length), {"coin_flip", {}, {}}},
                     {{"flip", {2, 0}}}}),
              HasSubstr("node 1 (pack): no output is made of it"));
}

TEST(Pack, OperatorsTakeItsOutputs) {
  Graph graph{{PackedReader(),
               Pack({{"length", Value(int64_t{8})}}),
               {"cast", {{1, 0}}, {{"dtype", Value(std::string("int64"))}}}},
              {{"tokens", {2, 0}}}};
  const auto checked = Check(graph, std::vector<ValueType>{kTokens});
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->stored, 1u);
}

}  // namespace
}  // namespace leat
