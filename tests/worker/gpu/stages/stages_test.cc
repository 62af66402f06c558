// SPDX-License-Identifier: Apache-2.0
//
// Pipelines after the fused kernel have the CPU's bytes.
#include <map>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/jpeg_maker.h"
#include "tests/support/sanitized.h"
#include "tests/worker/gpu/stages/graphs.h"
#include "tests/worker/gpu/stages/support.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using testing::MakeJpeg;
using Ints = std::vector<int64_t>;

TEST(Stages, RandomPipelinesHaveTheCpusBytes) {
  const int rounds = StagedPipelines(testing::kSanitized ? 100 : 400);
  const std::vector<std::string> images = Images();
  std::mt19937 random(20'260'301);
  std::map<std::string, int> refused;
  int staged = 0, same = 0, partners = 0, own_sizes = 0, same_of_own = 0,
      both = 0;
  for (int round = 0; round < rounds; ++round) {
    const Graph graph = RandomStagedGraph(random).Make(12);
    const auto checked = Check(graph);
    if (!checked.ok()) continue;  // an output whose size is not known
    StagedRunner gpu(*checked, round);
    if (!gpu.status().ok()) {
      ASSERT_TRUE(absl::IsUnimplemented(gpu.status())) << gpu.status();
      ++refused[std::string(Message(gpu.status()))];
      continue;
    }
    staged += gpu.program().stages() > 0 ? 1 : 0;
    partners += gpu.program().has_partner() ? 1 : 0;
    const int equal =
        CompareRows(checked->graph, gpu, round, images, random() % 9);
    same += equal;
    if (gpu.program().has_own_sizes()) {
      ++own_sizes;
      both += gpu.program().has_partner() && equal > 0 ? 1 : 0;
      same_of_own += equal;
    }
    if (::testing::Test::HasFailure()) {
      FAIL() << "round " << round << "\n" << CanonicalText(checked->graph);
    }
  }
  EXPECT_GT(staged, rounds / 2);
  EXPECT_GT(same, rounds);
  EXPECT_GT(partners, rounds / 8);
  EXPECT_GT(own_sizes, rounds / 5);
  EXPECT_GT(same_of_own, own_sizes);
  EXPECT_GT(both, rounds / 30);
  if (staged <= rounds / 2 || own_sizes <= rounds / 5)
    for (const auto& [why, count] : refused)
      ADD_FAILURE() << count << " " << why;
}

// decode, random_resized_crop to 12 × 10, and `last`.
Graph Behind(std::vector<Node> last) {
  last.insert(last.begin(),
              {"random_resized_crop", {}, {{"size", Ints{12, 10}}}});
  return ChainOf(std::move(last));
}

// One of each operator with a kernel; an image of three channels fits all.
std::vector<Node> EveryOperator() {
  using Floats = std::vector<double>;
  std::vector<Node> all = {
      {"brightness", {}, {{"brightness", Value(1.7)}}},
      {"contrast", {}, {{"contrast", Value(0.3)}}},
      {"brightness_contrast", {}, {{"contrast", Value(2.0)}}},
      {"hue", {}, {{"hue", Value(40.0)}}},
      {"saturation", {}, {{"saturation", Value(1.5)}}},
      {"hsv", {}, {{"value", Value(0.5)}}},
      {"color_twist", {}, {{"hue", Value(-20.0)}}},
      {"color_space_conversion",
       {},
       {{"image_type", Value(std::string("rgb"))},
        {"output_type", Value(std::string("gray"))}}},
      {"lookup_table", {}, {{"keys", Ints{3, 9}}, {"values", Floats{7, 8}}}},
      {"invert", {}, {}},
      {"neg", {}, {}},
      {"abs", {}, {}},
      {"pad", {}, {{"axes", Ints{0, 1}}, {"align", Ints{16}}}},
      {"slice", {}, {{"start", Ints{1, 2}}, {"axes", Ints{0, 1}}}},
      {"erase", {}, {{"shape", Floats{3, 4}}}},
      {"reshape", {}, {{"shape", Ints{-1}}}},
      {"flip", {}, {{"horizontal", Value(true)}}},
      {"rotate", {}, {{"angle", Value(30.0)}, {"keep_size", Value(true)}}},
      {"warp_affine", {}, {{"scale", Value(0.5)}}},
      {"gaussian_blur", {}, {{"sigma", Value(1.5)}}},
      {"noise_gaussian", {}, {{"stddev", Value(9.0)}}},
      {"noise_shot", {}, {{"factor", Value(7.0)}}},
      {"noise_salt_and_pepper", {}, {{"prob", Value(0.4)}}},
      {"standardize", {}, {}},
      {"equalize", {}, {}},
      {"auto_augment", {}, {}},
      {"rand_augment",
       {},
       {{"n", Value(int64_t{12})}, {"m", Value(int64_t{9})}}},
      {"trivial_augment_wide", {}, {}},
      {"crop_mirror_normalize", {}, {{"crop", Ints{7, 8}}}},
      {"resize", {}, {{"size", Ints{5, 20}}}},
      {"random_resized_crop", {}, {{"size", Ints{5, 20}}}},
  };
  for (const AugmentationInfo& info : Augmentations())
    all.push_back({"augment",
                   {},
                   {{"operation", Value(std::string(info.name))},
                    {"magnitude", Value(std::min(info.most, 0.7))}}});
  return all;
}

// Kernels compute each operator by itself; none is left to the CPU.
TEST(Stages, EveryOperatorOfTheFamiliesHasAKernel) {
  const std::vector<std::string> images = Images();
  for (const Node& node : EveryOperator()) {
    // A second one, so that no operator is the fused kernel's.
    const Graph graph = Behind({{"invert", {}, {}}, node});
    const auto checked = Check(graph);
    ASSERT_TRUE(checked.ok()) << node.op << checked.status();
    StagedRunner gpu(*checked, 5);
    ASSERT_TRUE(gpu.status().ok()) << node.op << gpu.status();
    EXPECT_GE(gpu.program().stages(), 1u);
    EXPECT_EQ(CompareRows(graph, gpu, 5, images, 0), 5) << node.op;
  }
}

Node ResizeTo(int64_t height, int64_t width) {
  return {"resize", {}, {{"size", Ints{height, width}}}};
}

// The same before the image is resized, when every sample has its own size.
TEST(Stages, EveryOperatorHasAKernelForSizesOfTheSamplesOwn) {
  const Node closing[] = {
      ResizeTo(5, 20),
      {"crop", {}, {{"size", Ints{1, 9}}}},
      {"pad", {}, {{"shape", Ints{150'000}}}},
  };
  std::vector<Node> operators = EveryOperator();
  for (const char* rule : {"fixed", "dali"})
    operators.push_back({"rotate",
                         {},
                         {{"angle", Value(30.0)},
                          {"keep_size", Value(false)},
                          {"rule", Value(std::string(rule))}}});
  operators.push_back({"random_crop", {}, {}});
  operators.push_back({"resize", {}, {{"shorter", Value(31.0)}}});
  for (const Node& node : operators) {
    std::vector<Node> nodes = {{"invert", {}, {}}, node};
    Graph graph = ChainOf(nodes);
    auto checked = Check(graph);
    for (const Node& last : closing) {
      if (checked.ok()) break;
      nodes.resize(2);
      nodes.push_back(last);
      graph = ChainOf(nodes);
      checked = Check(graph);
    }
    ASSERT_TRUE(checked.ok()) << node.op << checked.status();
    StagedRunner gpu(*checked, 5, {.value_bytes = size_t{1} << 20});
    ASSERT_TRUE(gpu.status().ok()) << node.op << gpu.status();
    EXPECT_EQ(CompareRows(graph, gpu, 5, Images(), 0), 5) << node.op;
  }
}

// Rows of one group, from a pixel to a hundred thousand, and long ones.
TEST(Stages, RowsOfAGroupMayDifferInSizeByFarMore) {
  std::vector<std::string> images;
  constexpr int kSides[][2] = {{1, 1},   {700, 3}, {290, 170},
                               {2, 900}, {16, 16}, {1, 40}};
  for (const auto& [width, height] : kSides)
    images.push_back(MakeJpeg({.width = width,
                               .height = height,
                               .orientation = 1 + width % 8,
                               .seed = static_cast<uint32_t>(height)}));
  const Node brightness{"brightness", {}, {{"brightness", Value(1.4)}}};
  const std::vector<Node> before[] = {
      {brightness},
      {{"rotate", {}, {{"angle", Value(77.0)}, {"keep_size", Value(false)}}}},
      {{"random_crop", {}, {}}, {"equalize", {}, {}}},
      {{"resize", {}, {{"shorter", Value(9.0)}}}, brightness},
      {{"gaussian_blur", {}, {{"sigma", Value(2.0)}}}},
      {{"flip", {}, {}}},
  };
  for (std::vector<Node> nodes : before) {
    nodes.push_back(ResizeTo(7, 6));
    const Graph graph = ChainOf(std::move(nodes));
    const auto checked = Check(graph);
    ASSERT_TRUE(checked.ok()) << checked.status();
    StagedRunner gpu(*checked, 3, {.value_bytes = size_t{2} << 20});
    ASSERT_TRUE(gpu.status().ok()) << gpu.status();
    EXPECT_GE(gpu.program().stages(), 2u);
    EXPECT_EQ(CompareRows(graph, gpu, 3, images, 5), 6) << graph.nodes[2].op;
  }
}

TEST(Stages, ARowThatIsTooLargeForItsPlaceIsLeftToTheCpu) {
  const Graph graph = ChainOf({{"invert", {}, {}}, ResizeTo(8, 8)});
  const auto checked = Check(graph);
  ASSERT_TRUE(checked.ok()) << checked.status();
  // Two values of as many bytes.
  StagedRunner gpu(*checked, 2, {.value_bytes = 40'000});
  ASSERT_TRUE(gpu.status().ok()) << gpu.status();
  EXPECT_LE(gpu.program().ValueBytes(4), 4 * 40'000u);
  std::vector<std::string> images;
  for (const int side : {10, 100, 75, 300})  // 75² × 3 bytes are 16,875
    images.push_back(MakeJpeg({.width = side, .height = side}));
  EXPECT_EQ(CompareRows(graph, gpu, 2, images, 0), 2);
  const std::vector<absl::Status> statuses = gpu.Run(images, 3, 0);
  for (const size_t row : {1, 3}) {
    EXPECT_TRUE(absl::IsResourceExhausted(statuses[row])) << statuses[row];
    EXPECT_THAT(std::string(Message(statuses[row])),
                HasSubstr("more elements than a row's have room for"));
  }
  const absl::Status none =
      StagedRunner(*checked, 2, {.value_bytes = 1500}).status();
  EXPECT_TRUE(absl::IsUnimplemented(none)) << none;
  EXPECT_THAT(std::string(Message(none)),
              HasSubstr("1500 bytes of a row are too few"));
}

// The CPU computes a sample whose result does not fit, and reports it.
TEST(Stages, AResultThatDoesNotFitItsSizeIsLeftToTheCpu) {
  const Graph graph =
      ChainOf({{"invert", {}, {}}, {"pad", {}, {{"shape", Ints{60, 50, 3}}}}});
  const auto checked = Check(graph);
  ASSERT_TRUE(checked.ok()) << checked.status();
  StagedRunner gpu(*checked, 2);
  ASSERT_TRUE(gpu.status().ok()) << gpu.status();
  std::vector<std::string> images = {MakeJpeg({.width = 20, .height = 47}),
                                     MakeJpeg({.width = 50, .height = 61}),
                                     MakeJpeg({.width = 50, .height = 60})};
  EXPECT_EQ(CompareRows(graph, gpu, 2, images, 0), 2);
}

// Samples of another size are bad, which the CPU reports.
TEST(Stages, ImagesOfTwoKindsArePastedWhereTheyHaveOneSize) {
  for (const bool swapped : {false, true}) {
    Graph graph = ChainOf({ResizeTo(47, 33)});
    graph.nodes.push_back({"cutmix_paste",
                           {{swapped ? 1u : 2u, 0}, {swapped ? 2u : 1u, 0}},
                           {{"lam", Value(0.6)}}});
    graph.outputs[0].second = {3, 0};
    const auto checked = Check(graph);
    ASSERT_TRUE(checked.ok()) << checked.status();
    StagedRunner gpu(*checked, 2);
    ASSERT_TRUE(gpu.status().ok()) << gpu.status();
    EXPECT_TRUE(gpu.program().has_own_sizes());
    EXPECT_EQ(CompareRows(graph, gpu, 2, Images(), 0), 1);
  }
}

TEST(Stages, DecodesAreYcbcrWhereThePipelineSaysSo) {
  const std::vector<Node> behind[] = {
      {ResizeTo(9, 11)},
      {{"crop", {}, {{"size", Ints{8, 8}}}}},
      {{"flip", {}, {}}, {"random_crop", {}, {}}, ResizeTo(30, 4)},
      {{"color_space_conversion",
        {},
        {{"image_type", Value(std::string("ycbcr"))},
         {"output_type", Value(std::string("rgb"))}}},
       ResizeTo(9, 11)},
  };
  for (const std::vector<Node>& nodes : behind) {
    Graph graph = ChainOf(nodes);
    graph.nodes[1].args["output"] = Value(std::string("ycbcr"));
    const auto checked = Check(graph);
    ASSERT_TRUE(checked.ok()) << checked.status();
    StagedRunner gpu(*checked, 2, {.value_bytes = size_t{1} << 20});
    ASSERT_TRUE(gpu.status().ok()) << gpu.status();
    EXPECT_EQ(CompareRows(graph, gpu, 2, Images(), 1), 5);
  }
}

TEST(Stages, WhatHasNoKernelIsNamed) {
  const auto expect = [](const Graph& graph, const char* text) {
    const auto checked = Check(graph);
    ASSERT_TRUE(checked.ok()) << checked.status();
    const absl::Status status = StagedRunner(*checked, 1).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(text));
  };
  expect(Behind({{"jpeg_compression_distortion", {}, {}}}),
         "node 3 (jpeg_compression_distortion)");
}

// The CPU reports a number outside an argument's range.
TEST(Stages, RowsWithBadArgumentsAreLeftToTheCpu) {
  Graph graph = Behind({});
  graph.nodes.push_back(
      {"uniform", {}, {{"low", Value(-9.0)}, {"high", Value(9.0)}}});
  graph.nodes.push_back(
      {"gaussian_blur", {{2, 0}}, {{"sigma", NodeRef{3, 0}}}});
  graph.outputs[0].second = {4, 0};
  const auto checked = Check(graph);
  ASSERT_TRUE(checked.ok()) << checked.status();
  StagedRunner gpu(*checked, 2);
  ASSERT_TRUE(gpu.status().ok()) << gpu.status();
  const std::vector<std::string> images(40, Images()[0]);
  const int same = CompareRows(graph, gpu, 2, images, 0);
  EXPECT_GT(same, 5);
  EXPECT_LT(same, 35);
}

// Processors make different NaNs; operators give a single one.
TEST(Stages, NansThatAreComputedAreTheSameOnEveryProcessor) {
  const Node infinite{
      "brightness",
      {},
      {{"brightness", Value(1e6)}, {"dtype", Value(std::string("float32"))}}};
  std::vector<Node> large(8, infinite);
  std::vector<Node> brightness = large, hsv = large;
  brightness.push_back({"brightness", {}, {{"brightness", Value(0.0)}}});
  hsv.push_back({"hsv", {}, {{"hue", Value(120.0)}}});
  for (const auto& nodes : {brightness, hsv}) {
    const Graph graph = Behind(nodes);
    const auto checked = Check(graph);
    ASSERT_TRUE(checked.ok()) << checked.status();
    StagedRunner gpu(*checked, 2);
    ASSERT_TRUE(gpu.status().ok()) << gpu.status();
    ASSERT_EQ(CompareRows(graph, gpu, 2, Images(), 0), 5);
    int nans = 0;
    for (size_t at = 0; at < gpu.output(0, 0).size(); at += 4) {
      float value;
      memcpy(&value, gpu.output(0, 0).data() + at, sizeof value);
      if (value == value) continue;
      EXPECT_EQ(BitsOf(value), 0x7fc00000u);
      ++nans;
    }
    EXPECT_GT(nans, 9);
  }
}

// A value that is an output and is read again, two outputs, or only reshaped.
TEST(Stages, ShotNoiseOfFactor0KeepsAllDigits) {
  const Graph graph = Behind({{"lookup_table",
                               {},
                               {{"keys", Ints{0}},
                                {"values", std::vector<double>{16777217}},
                                {"default_value", Value(20000003.0)},
                                {"dtype", Value(std::string("int32"))}}},
                              {"noise_shot", {}, {{"factor", Value(0.0)}}}});
  const auto checked = Check(graph);
  ASSERT_TRUE(checked.ok()) << checked.status();
  StagedRunner gpu(*checked, 5);
  ASSERT_TRUE(gpu.status().ok()) << gpu.status();
  EXPECT_EQ(CompareRows(graph, gpu, 5, Images(), 0), 5);
}

TEST(Stages, OutputsMayBeReadAgain) {
  Graph graph = Behind({{"invert", {}, {}},
                        {"brightness", {}, {{"brightness", Value(2.0)}}},
                        {"reshape", {}, {{"shape", Ints{-1}}}}});
  graph.outputs = {{"a", {3, 0}}, {"b", {3, 0}}, {"c", {4, 0}},
                   {"d", {5, 0}}, {"e", {2, 0}}, {"f", {0, 1}}};
  const auto checked = Check(graph);
  ASSERT_TRUE(checked.ok()) << checked.status();
  StagedRunner gpu(*checked, 2);
  ASSERT_TRUE(gpu.status().ok()) << gpu.status();
  EXPECT_EQ(CompareRows(graph, gpu, 2, Images(), 3), 5);
}

}  // namespace
}  // namespace leat::worker
