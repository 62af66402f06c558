// SPDX-License-Identifier: Apache-2.0
//
// Pipelines behind the fused kernel: the CPU's bytes, and values that do not
// get into each other's way.
#include <cstdlib>
#include <map>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/gpu/staged_graphs.h"
#include "tests/worker/gpu/staged_support.h"
#include "tests/worker/row_beside.h"
#include "worker/gpu/stages/value_places.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using testing::MakeJpeg;
using Ints = std::vector<int64_t>;

TEST(ValuePlaces, ValuesThatAreNeededTogetherShareNoMemory) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    ValuePlaces places;
    const uint32_t count = 1 + random() % 30;
    uint64_t sum = 0;
    for (uint32_t value = 0; value < count; ++value) {
      const uint64_t bytes = 1 + random() % (random() % 3 == 0 ? 100'000 : 999);
      ASSERT_EQ(places.Add(bytes), value);
      const uint32_t first = random() % 20;
      places.Use(value, first);
      places.Use(value, first + random() % 6);
      sum += places.bytes(value);
    }
    places.Place();
    EXPECT_LE(places.row_bytes(), sum);
    EXPECT_EQ(places.row_bytes() % kValueAlignment, 0u);
    for (uint32_t a = 0; a < count; ++a) {
      EXPECT_EQ(places.at(a) % kValueAlignment, 0u);
      EXPECT_LE(places.at(a) + places.bytes(a), places.row_bytes());
      for (uint32_t b = 0; b < a; ++b)
        EXPECT_TRUE(!places.Meet(a, b) ||
                    places.at(a) + places.bytes(a) <= places.at(b) ||
                    places.at(b) + places.bytes(b) <= places.at(a))
            << a << " " << b;
    }
  }
}

TEST(ValuePlaces, AChainTakesTheMemoryOfTwoValues) {
  ValuePlaces places;
  for (uint32_t value = 0; value < 12; ++value) {
    places.Add(1000);
    places.Use(value, value);
    places.Use(value, value + 1);
  }
  places.Place();
  EXPECT_EQ(places.row_bytes(), 2 * 1024u);
}

std::vector<std::string> Images() {
  std::vector<std::string> images;
  for (int i = 0; i < 5; ++i)
    images.push_back(MakeJpeg({.width = 20 + 13 * i,
                               .height = 47,
                               .orientation = i + 1,
                               .seed = static_cast<uint32_t>(i + 1)}));
  images.back() = MakeJpeg({.width = 290, .height = 170});
  return images;
}

// Rows of the graph by both; those that both computed.
int CompareRows(const Graph& graph, StagedRunner& gpu, uint64_t seed,
                const std::vector<std::string>& images, size_t misalign) {
  Runner cpu(graph, seed);
  Scratch scratch({});
  const std::vector<absl::Status> statuses = gpu.Run(images, 3, misalign);
  int same = 0;
  for (size_t row = 0; row < images.size(); ++row) {
    const size_t next = (row + 1) % images.size();
    const StoredSample beside =
        StoredImage(AsSpan(images[next]), kPartnersLabel);
    RowBeside partner({3, next, beside.fields});
    const absl::Status want = cpu.Run(images[row], scratch, row, 3, &partner);
    // What the CPU refuses is left to the CPU, which says why.
    if (!want.ok()) {
      EXPECT_FALSE(statuses[row].ok()) << want;
      continue;
    }
    if (!statuses[row].ok()) continue;  // left to the CPU
    for (size_t f = 0; f < cpu.outputs.size(); ++f)
      EXPECT_EQ(gpu.output(row, f), cpu.outputs[f])
          << "row " << row << " field " << f;
    ++same;
  }
  return same;
}

// LEAT_STAGED_PIPELINES: how many.
TEST(Stages, RandomPipelinesHaveTheCpusBytes) {
  const char* given = std::getenv("LEAT_STAGED_PIPELINES");
  const int rounds = given != nullptr ? std::atoi(given) : 400;
  const std::vector<std::string> images = Images();
  std::mt19937 random(20'260'301);
  std::map<std::string, int> refused;
  int staged = 0, same = 0, partners = 0;
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
    same += CompareRows(checked->graph, gpu, round, images, random() % 9);
    if (::testing::Test::HasFailure()) {
      FAIL() << "round " << round << "\n" << CanonicalText(checked->graph);
    }
  }
  EXPECT_GT(staged, rounds / 2);
  EXPECT_GT(same, rounds);
  EXPECT_GT(partners, rounds / 8);
  if (staged <= rounds / 2)
    for (const auto& [why, count] : refused)
      ADD_FAILURE() << count << " " << why;
}

// decode, random_resized_crop to 12 × 10, and what follows.
Graph Behind(std::vector<Node> last) {
  last.insert(last.begin(),
              {"random_resized_crop", {}, {{"size", Ints{12, 10}}}});
  return ChainOf(std::move(last));
}

// Each operator by itself is computed by kernels, not left to the CPU.
TEST(Stages, EveryOperatorOfTheFamiliesHasAKernel) {
  using Floats = std::vector<double>;
  const std::vector<Node> operators = {
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
      {"pad", {}, {{"align", Ints{16}}}},
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
      {"equalize", {}, {}},
      {"auto_augment", {}, {}},
      {"rand_augment",
       {},
       {{"n", Value(int64_t{3})}, {"m", Value(int64_t{9})}}},
      {"trivial_augment_wide", {}, {}},
      {"crop_mirror_normalize", {}, {{"crop", Ints{7, 8}}}},
      {"resize", {}, {{"size", Ints{5, 20}}}},
      {"random_resized_crop", {}, {{"size", Ints{5, 20}}}},
  };
  std::vector<Node> all = operators;
  for (const AugmentationInfo& info : Augmentations())
    all.push_back({"augment",
                   {},
                   {{"operation", Value(std::string(info.name))},
                    {"magnitude", Value(std::min(info.most, 0.7))}}});
  const std::vector<std::string> images = Images();
  for (const Node& node : all) {
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
  // Before the resize every sample has a size of its own.
  expect(ChainOf({{"invert", {}, {}}, {"resize", {}, {{"size", Ints{8}}}}}),
         "node 2 (invert) cannot be fused: its input's size differs");
  Graph divided = Behind({});
  divided.nodes.push_back({"floordiv", {{2, 0}, {2, 0}}, {}});
  divided.outputs[0].second = {3, 0};
  expect(divided, "divisor");
}

// A divisor that is 0, a number out of an argument's range: the CPU's to say.
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

// Processors make NaNs of their own; what operators give has one.
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

// A value that is an output and is read again, twice an output, only reshaped.
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
