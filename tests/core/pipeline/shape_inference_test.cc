// SPDX-License-Identifier: Apache-2.0
#include "core/pipeline/shape_inference.h"

#include <set>

#include "core/pipeline/operator_table.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "tests/core/pipeline/graph_support.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

constexpr DType kCarried[] = {DType::kInt8, DType::kInt16, DType::kUint16,
                              DType::kUint32, DType::kBfloat16};

ValueType TensorOf(DType dtype, Shape shape) {
  return {ValueType::Kind::kTensor, dtype, std::move(shape)};
}

TEST(CarriedTypes, AreRefusedByEveryOperatorThatComputes) {
  std::set<std::string> takes;
  for (const OperatorEntry& entry : OperatorTable()) {
    if (entry.info.inputs == 0) continue;
    if (entry.info.takes_carried) {
      takes.insert(entry.info.name);
      continue;
    }
    for (const DType dtype : kCarried) {
      Node node{entry.info.name, {}, {}};
      // The last input is the one that is only carried.
      std::vector<ValueType> inputs(static_cast<size_t>(entry.info.inputs),
                                    TensorOf(DType::kUint8, {4, 4, 3}));
      inputs.back().dtype = dtype;
      const absl::Status status = InferTypes(&node, inputs).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << entry.info.name;
      EXPECT_THAT(Message(status),
                  HasSubstr(fmt::format("do not compute with {}: cast it",
                                        Name(dtype))))
          << entry.info.name;
    }
  }
  EXPECT_EQ(takes, (std::set<std::string>{"cast", "length", "pack", "pad",
                                          "reshape", "slice"}));
}

TEST(CarriedTypes, ArePassedOnByOperatorsThatMoveElements) {
  for (int i = 1; i <= static_cast<int>(kLastDType); ++i) {
    const auto dtype = static_cast<DType>(i);
    Graph graph;
    graph.nodes = {
        {"readers.numpy", {}, {{"array", Value(std::string("/a.npy"))}}},
        {"slice", {{0, 0}}, {{"end", Value(std::vector<int64_t>{7})}}},
        {"pad", {{0, 0}}, {{"shape", Value(std::vector<int64_t>{12})}}},
        {"reshape", {{2, 0}}, {{"shape", Value(std::vector<int64_t>{3, 4})}}},
        {"length", {{0, 0}}, {}},
        {"cast", {{2, 0}}, {{"dtype", Value(std::string("float32"))}}},
        {"cast", {{5, 0}}, {{"dtype", Value(std::string(Name(dtype)))}}}};
    graph.outputs = {{"padded", {2, 0}},
                     {"shaped", {3, 0}},
                     {"length", {4, 0}},
                     {"wide", {5, 0}},
                     {"back", {6, 0}}};
    const auto checked =
        Check(graph, std::vector<ValueType>{TensorOf(dtype, {-1})});
    ASSERT_TRUE(checked.ok()) << checked.status();
    const size_t size = SizeOf(dtype);
    EXPECT_EQ(checked->schema.fields[0],
              (Field{"padded", dtype, {12}, 12 * size}));
    EXPECT_EQ(checked->schema.fields[1],
              (Field{"shaped", dtype, {3, 4}, 12 * size}));
    EXPECT_EQ(checked->schema.fields[2].dtype, DType::kInt32);
    EXPECT_EQ(checked->schema.fields[3].dtype, DType::kFloat32);
    EXPECT_EQ(checked->schema.fields[4].dtype, dtype);
  }
}

TEST(CarriedTypes, AreNoArgumentsOfASample) {
  Graph graph;
  graph.nodes = {
      {"readers.numpy", {}, {{"array", Value(std::string("/a.npy"))}}},
      {"slice",
       {{0, 0}},
       {{"shape", Value(std::vector<int64_t>{2})},
        {"offset_0", NodeRef{0, 1}}}}};
  graph.outputs = {{"x", {1, 0}}};
  const absl::Status status =
      Check(graph, std::vector<ValueType>{TensorOf(DType::kUint16, {9}),
                                          TensorOf(DType::kUint16, {})})
          .status();
  EXPECT_THAT(Message(status),
              HasSubstr("is uint16 scalar, want a float32 scalar"));
}

}  // namespace
}  // namespace leat
