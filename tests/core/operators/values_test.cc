// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "core/tensor/broadcast.h"
#include "core/tensor/value_types.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using Floats = std::vector<double>;
using Ints = std::vector<int64_t>;

absl::StatusOr<CheckedGraph> CheckOn(ValueType input, Node node,
                                     std::vector<ValueType> more = {}) {
  Graph graph;
  node.inputs = {{0, 0}};
  std::vector<ValueType> stored = {std::move(input)};
  for (ValueType& type : more) {
    node.inputs.push_back({0, static_cast<uint32_t>(stored.size())});
    stored.push_back(std::move(type));
  }
  graph.nodes = {
      {"readers.numpy", {}, {{"path", Value(std::string("/none.npy"))}}},
      std::move(node)};
  graph.outputs = {{"x", {1, 0}}};
  return Check(graph, stored);
}

ValueType Tensor(DType dtype, Shape shape) {
  return {ValueType::Kind::kTensor, dtype, std::move(shape)};
}

TEST(Broadcast, JoinsShapesAsNumpyDoes) {
  const auto joined = [](Shape a, const Shape& b) {
    return Broadcast(b, &a) ? a : Shape{-9};
  };
  EXPECT_EQ(joined({}, {}), (Shape{}));
  EXPECT_EQ(joined({4, 3}, {}), (Shape{4, 3}));
  EXPECT_EQ(joined({}, {4, 3}), (Shape{4, 3}));
  EXPECT_EQ(joined({4, 1}, {5}), (Shape{4, 5}));
  EXPECT_EQ(joined({3}, {2, 1, 3}), (Shape{2, 1, 3}));
  EXPECT_EQ(joined({4, 3}, {4}), (Shape{-9}));
}

TEST(Broadcast, LeavesOpenWhatOnlyTheSampleKnows) {
  const auto joined = [](Shape a, const Shape& b) {
    return Broadcast(b, &a) ? a : Shape{-9};
  };
  EXPECT_EQ(joined({-1, 3}, {-1, 3}), (Shape{-1, 3}));
  EXPECT_EQ(joined({-1}, {1}), (Shape{-1}));
  EXPECT_EQ(joined({1}, {-1}), (Shape{-1}));
  EXPECT_EQ(joined({-1}, {5}), (Shape{5}));
  EXPECT_EQ(joined({5}, {-1}), (Shape{5}));
}

TEST(ValueTypes, PromotionIsSymmetricAndFloatsWin) {
  EXPECT_EQ(PromotedType(DType::kUint8, DType::kInt32), DType::kInt32);
  EXPECT_EQ(PromotedType(DType::kFloat16, DType::kInt64), DType::kFloat16);
  EXPECT_EQ(PromotedType(DType::kFloat16, DType::kFloat32), DType::kFloat32);
  EXPECT_EQ(PromotedType(DType::kBool, DType::kUint8), DType::kUint8);
}

TEST(Check, CompletesTheCentreOfContrastByTheInputsType) {
  for (const auto& [dtype, center] :
       {std::pair{DType::kUint8, 128.0}, {DType::kFloat32, 0.5}}) {
    const auto once = CheckOn(Tensor(dtype, {4, 4, 3}), {"contrast", {}, {}});
    ASSERT_TRUE(once.ok()) << Message(once.status());
    EXPECT_EQ(once->graph.nodes[1].args.at("contrast_center"),
              Value(Floats{center}));
    const auto twice = Check(once->graph, once->types[0]);
    ASSERT_TRUE(twice.ok());
    EXPECT_EQ(once->graph, twice->graph);
  }
}

TEST(Check, KnowsTheTypesOfOperatorsOnValues) {
  const ValueType image = Tensor(DType::kUint8, {4, 4, 3});
  const auto type = [&](Node node, std::vector<ValueType> more = {}) {
    const auto checked = CheckOn(image, std::move(node), std::move(more));
    EXPECT_TRUE(checked.ok()) << Message(checked.status());
    return checked.ok() ? checked->types[1][0] : ValueType{};
  };
  EXPECT_EQ(type({"gt", {}, {}}, {Tensor(DType::kFloat32, {})}),
            Tensor(DType::kBool, {4, 4, 3}));
  EXPECT_EQ(type({"div", {}, {}}, {Tensor(DType::kInt32, {2, 1, 1, 3})}),
            Tensor(DType::kFloat32, {2, 4, 4, 3}));
  EXPECT_EQ(type({"one_hot", {}, {{"num_classes", Value(int64_t{7})}}}),
            Tensor(DType::kFloat32, {4, 4, 3, 7}));
  EXPECT_EQ(type({"standardize", {}, {}}), Tensor(DType::kFloat32, {4, 4, 3}));
  EXPECT_EQ(
      type({"brightness", {}, {{"dtype", Value(std::string("float16"))}}}),
      Tensor(DType::kFloat16, {4, 4, 3}));
}

TEST(Check, RefusesOperatorsOnValuesThatDoNotFit) {
  const auto error = [](ValueType input, Node node,
                        std::vector<ValueType> more = {}) {
    const auto checked =
        CheckOn(std::move(input), std::move(node), std::move(more));
    EXPECT_EQ(checked.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(Message(checked.status()));
  };
  const ValueType image = Tensor(DType::kUint8, {4, 4, 3});
  const ValueType gray = Tensor(DType::kUint8, {4, 4, 1});
  const ValueType encoded = {ValueType::Kind::kEncoded, DType::kUint8, {}};
  EXPECT_THAT(error(encoded, {"add", {}, {}}, {image}),
              HasSubstr("put a decode before it"));
  EXPECT_THAT(error(image, {"add", {}, {}}, {Tensor(DType::kUint8, {5, 3})}),
              HasSubstr("uint8 (5, 3)"));
  EXPECT_THAT(error(gray, {"saturation", {}, {}}), HasSubstr("3 channels"));
  EXPECT_THAT(
      error(image, {"contrast", {}, {{"contrast_center", Floats{1, 2}}}}),
      HasSubstr("2 numbers, want one"));
  EXPECT_THAT(error(image, {"lookup_table",
                            {},
                            {{"keys", Ints{70'000}}, {"values", Floats{1}}}}),
              HasSubstr("0 to 65535"));
  EXPECT_THAT(error(image, {"standardize", {}, {{"axes", Ints{1, 1}}}}),
              HasSubstr("some of the 3 axes"));
  EXPECT_THAT(error(Tensor(DType::kBool, {4}), {"noise_gaussian", {}, {}}),
              HasSubstr("want numbers"));
}

// A worker keeps the tables of all jobs.
TEST(Check, BoundsAllTablesOfAPipeline) {
  const auto checked = [](size_t tables, int64_t key) {
    Graph graph;
    graph.nodes.push_back(
        {"readers.numpy", {}, {{"path", Value(std::string("/none.npy"))}}});
    for (uint32_t i = 0; i < tables; ++i)
      graph.nodes.push_back({"lookup_table",
                             {{i, 0}},
                             {{"keys", Ints{key, 0}},
                              {"values", Floats{1, 2}},
                              {"dtype", Value(std::string("int64"))}}});
    graph.outputs = {{"x", {static_cast<uint32_t>(tables), 0}}};
    const ValueType input = Tensor(DType::kInt64, {4});
    return Check(graph, std::span(&input, 1)).status();
  };
  EXPECT_EQ(checked(32, 65'535), absl::OkStatus());
  EXPECT_EQ(checked(900, 1'000), absl::OkStatus());
  const absl::Status status = checked(33, 65'535);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("have 17301504 bytes, want at most 16777216"));
}

// Sizes of values between operators, in bytes, would not fit 64 bits.
TEST(Check, BoundsValuesThatAreNoOutputs) {
  const auto error = [](ValueType input, Node node) {
    const auto checked = CheckOn(std::move(input), std::move(node));
    EXPECT_EQ(checked.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(Message(checked.status()));
  };
  const ValueType label = Tensor(DType::kInt32, {1, 1, 1});
  const Node pad{
      "pad", {}, {{"shape", Ints{1 << 22, 1 << 21, 1 << 21}}}};  // 2^66 bytes
  EXPECT_THAT(error(label, pad),
              HasSubstr("node 1 (pad): its result is int32 (4194304, 2097152, "
                        "2097152): over 1099511627776 bytes"));
  // The number of elements, which reshape computes, has over 64 bits.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(error(Tensor(DType::kUint8, {kMost, kMost}),
                    {"reshape", {}, {{"shape", Ints{-1}}}}),
              HasSubstr("node 0 (readers.numpy): its result is uint8"));
  // Sizes that differ from sample to sample do not count.
  EXPECT_TRUE(
      CheckOn(Tensor(DType::kUint8, {-1, -1}), {"length", {}, {}}).ok());
}

TEST(Check, RefusesImagesOfSidesThatWorkersRefuse) {
  const auto error = [](int64_t width, Node node) {
    const auto checked =
        CheckOn(Tensor(DType::kUint8, {8, width, 3}), std::move(node));
    EXPECT_EQ(checked.status().code(), absl::StatusCode::kInvalidArgument)
        << node.op;
    return std::string(Message(checked.status()));
  };
  const auto text = [](const char* name) { return Value(std::string(name)); };
  const Node moved[] = {
      {"rotate", {}, {{"angle", 1.0}, {"keep_size", true}}},
      {"warp_affine", {}, {}},
      {"jpeg_compression_distortion", {}, {}},
      {"augment", {}, {{"operation", text("invert")}}},
      {"auto_augment", {}, {}},
      {"rand_augment", {}, {{"n", int64_t{1}}, {"m", int64_t{1}}}},
      {"trivial_augment_wide", {}, {}}};
  for (const Node& node : moved)
    EXPECT_THAT(error(65'501, node), HasSubstr("want sides of at most 65500"));
  const Node resized[] = {{"resize", {}, {{"size", Ints{4}}}},
                          {"random_resized_crop", {}, {{"size", Ints{4}}}}};
  for (const Node& node : resized) {
    EXPECT_THAT(error((1 << 20) + 1, node),
                HasSubstr("cannot be resized, want sides of 1 to 1048576"));
    EXPECT_TRUE(CheckOn(Tensor(DType::kUint8, {8, 1 << 20, 3}), node).ok());
  }
}

// In floats 1 + 1e-9 is 1, and the determinant 0.
TEST(Check, RefusesAMatrixThatWorkersCannotInvert) {
  const auto check = [](const char* rule, bool inverse) {
    return CheckOn(Tensor(DType::kUint8, {8, 8, 3}),
                   {"warp_affine",
                    {},
                    {{"matrix", Floats{1 + 1e-9, 1, 0, 1, 1, 0}},
                     {"inverse_map", inverse},
                     {"rule", Value(std::string(rule))}}})
        .status();
  };
  EXPECT_TRUE(check("fixed", false).ok());
  EXPECT_TRUE(check("dali", true).ok());
  EXPECT_THAT(Message(check("dali", false)), HasSubstr("the determinant 0"));
}

TEST(Check, RefusesTheSecondSideOfARegionOfOneAxis) {
  const auto check = [](Ints axes, const char* name) {
    return CheckOn(Tensor(DType::kFloat32, {8, 8, 3}),
                   {"erase",
                    {},
                    {{"axes", std::move(axes)}, {"height", 2.0}, {name, 1.0}}})
        .status();
  };
  for (const char* name : {"x", "width"}) {
    EXPECT_TRUE(check({0, 1}, name).ok());
    EXPECT_THAT(
        Message(check({0}, name)),
        HasSubstr(fmt::format("argument \"{}\" is for the second axis", name)));
  }
}

}  // namespace
}  // namespace leat
