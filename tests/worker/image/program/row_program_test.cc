// SPDX-License-Identifier: Apache-2.0
#include "worker/image/program/row_program.h"

#include <cmath>
#include <cstring>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/program/support.h"
#include "tests/worker/image/resample/random_resize.h"
#include "worker/image/formulas/pixel.h"
#include "worker/image/program/scratch.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using testing::JpegColor;
using testing::JpegSpec;
using testing::MakeJpeg;
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

Value Text(const char* text) { return Value(std::string(text)); }

std::vector<std::string> Images() {
  std::vector<std::string> images;
  const int samplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}};
  uint32_t seed = 0;
  for (const auto& [h, v] : samplings)
    images.push_back(MakeJpeg({.width = 150 + static_cast<int>(seed) * 31,
                               .height = 170 - static_cast<int>(seed) * 13,
                               .h = h,
                               .v = v,
                               .seed = ++seed}));
  for (int orientation = 2; orientation <= 8; ++orientation)
    images.push_back(MakeJpeg({.width = 140 + orientation,
                               .height = 120,
                               .orientation = orientation,
                               .seed = ++seed}));
  images.push_back(
      MakeJpeg({.width = 130, .height = 190, .progressive = true}));
  images.push_back(MakeJpeg(
      {.width = 131, .height = 77, .color = JpegColor::kGray, .h = 1, .v = 1}));
  images.push_back(MakeJpeg(
      {.width = 99, .height = 101, .color = JpegColor::kYcck, .h = 1, .v = 1}));
  images.push_back(MakeJpeg({.width = 31, .height = 350}));
  images.push_back(MakeJpeg({.width = 70, .height = 70}));
  return images;
}

// A random chain of operators that ends with a fixed size.
std::vector<Node> RandomChain(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  const char* const filters[] = {"linear", "nearest", "cubic", "lanczos3",
                                 "gaussian"};
  const auto size = [&] { return Ints{5 + below(60), 5 + below(60)}; };
  std::vector<Node> chain;
  const auto resampling = [&](Node node) {
    node.args["interpolation"] = Text(filters[below(5)]);
    node.args["antialias"] = Value(below(4) != 0);
    node.args["rule"] = Text(below(3) == 0 ? "dali" : "pillow");
    return node;
  };
  const auto add_flip = [&] {
    chain.push_back({"flip",
                     {},
                     {{"horizontal", Value(below(2) == 0)},
                      {"vertical", Value(below(2) == 0)}}});
  };
  const auto add_crop = [&](int64_t h, int64_t w) {
    chain.push_back({"crop",
                     {},
                     {{"size", Ints{h, w}},
                      {"pos_y", Value(below(101) / 100.0)},
                      {"pos_x", Value(below(101) / 100.0)}}});
  };
  if (below(5) == 0) add_flip();
  if (below(4) == 0)
    chain.push_back({"random_crop", {}, {{"area", Floats{0.4, 1}}}});
  if (below(4) == 0)
    chain.push_back({"window",
                     {},
                     {{"y", Value(below(25) / 100.0)},
                      {"x", Value(below(25) / 100.0)},
                      {"height", Value(0.6 + below(16) / 100.0)},
                      {"width", Value(0.75)},
                      {"normalized_anchor", Value(true)},
                      {"normalized_shape", Value(true)}}});
  if (below(3) == 0) add_crop(20 + below(11), 20 + below(11));
  switch (below(6)) {
    case 3:
      chain.push_back(resampling(
          {"resize", {}, RandomResizing(20, 5 + below(60), true, random)}));
      break;
    case 4:
      chain.push_back(
          resampling({"resize", {}, RandomResizing(30, 40, false, random)}));
      add_crop(20, 20 + below(20));
      break;
    case 0:
      chain.push_back(
          resampling({"random_resized_crop", {}, {{"size", size()}}}));
      break;
    case 1:
      chain.push_back(resampling({"resize", {}, {{"size", size()}}}));
      break;
    case 2:
      chain.push_back(resampling(
          {"resize", {}, {{"size", Ints{40}}, {"mode", Text("not_smaller")}}}));
      add_crop(30, 30 + below(11));
      break;
    default:
      add_crop(5 + below(16), 5 + below(16));
  }
  if (below(2) == 0) add_flip();
  if (below(3) == 0) add_crop(1 + below(5), 1 + below(5));
  if (below(4) == 0)
    chain.push_back(resampling({"resize", {}, {{"size", size()}}}));
  if (below(2) == 0)
    chain.push_back({"normalize",
                     {},
                     {{"mean", Floats{100}},
                      {"std", Floats{57.5}},
                      {"dtype", Text(below(2) == 0 ? "float16" : "float32")}}});
  if (below(3) == 0)
    chain.push_back({"transpose", {}, {{"perm", Ints{2, 0, 1}}}});
  if (below(3) == 0)
    chain.push_back(
        {"cast", {}, {{"dtype", Text(below(2) == 0 ? "float32" : "int32")}}});
  return chain;
}

TEST(RowProgram, FusionIsInvisible) {
  const std::vector<std::string> images = Images();
  std::mt19937 random(11);
  Scratch scratch({}), other({});
  for (int round = 0; round < 250; ++round) {
    const Graph graph = ChainOf(RandomChain(random), round % 5 == 0);
    Runner fused(graph, round), plain(graph, round, false);
    for (size_t i = 0; i < images.size(); i += 1 + random() % 5) {
      const auto status = fused.Run(images[i], scratch, i, 3);
      const auto want = plain.Run(images[i], other, i, 3);
      ASSERT_EQ(status.code(), want.code())
          << Message(status) << " / " << Message(want);
      if (!status.ok()) continue;
      ASSERT_EQ(fused.outputs, plain.outputs)
          << CanonicalText(graph) << " image " << i;
    }
  }
}

Graph Train(int size) {
  Graph graph = ChainOf({{"coin_flip", {}, {}}});
  graph.nodes[2].inputs.clear();
  graph.nodes.push_back(
      {"random_resized_crop", {{1, 0}}, {{"size", Ints{size}}}});
  graph.nodes.push_back({"flip", {{3, 0}}, {{"horizontal", NodeRef{2, 0}}}});
  graph.outputs = {{"image", {4, 0}},
                   {"label", {0, 1}},
                   {"coin", {2, 0}},
                   {"again", {0, 1}}};
  return graph;
}

class RowProgramOf : public ::testing::TestWithParam<TestData> {};
INSTANTIATE_TEST_SUITE_P(Data, RowProgramOf, AllTestData(), TestDataName);

TEST_P(RowProgramOf, PhotosIsFusedInvisibly) {
  const auto photos = TestDataFiles(GetParam(), "imagenet-sample", 40);
  if (photos.empty()) GTEST_SKIP() << NoTestData(GetParam(), "imagenet-sample");
  Runner fused(Train(224), 5), plain(Train(224), 5, false);
  Scratch scratch({});
  uint64_t sample = 0;
  for (const std::string& photo : photos) {
    ASSERT_TRUE(fused.Run(photo, scratch, ++sample).ok());
    ASSERT_TRUE(plain.Run(photo, scratch, sample).ok());
    ASSERT_EQ(fused.outputs, plain.outputs);
  }
}

// The argument and the size of a resize may differ per sample.
TEST(RowProgram, ResizesToALengthOfEachSample) {
  Graph graph = ChainOf({{"uniform", {}, {}}});
  graph.nodes[2].inputs.clear();
  graph.nodes[2].args = {{"low", Value(20.0)}, {"high", Value(60.0)}};
  graph.nodes.push_back({"resize", {{1, 0}}, {{"shorter", NodeRef{2, 0}}}});
  graph.nodes.push_back({"reshape", {{3, 0}}, {{"shape", Ints{-1}}}});
  graph.nodes.push_back({"slice", {{4, 0}}, {{"shape", Ints{1200}}}});
  graph.outputs = {{"x", {5, 0}}, {"side", {2, 0}}};
  Runner fused(graph, 4), plain(graph, 4, false);
  Scratch scratch({});
  const std::string jpeg = MakeJpeg({.width = 100, .height = 80});
  for (uint64_t sample = 0; sample < 20; ++sample) {
    ASSERT_TRUE(fused.Run(jpeg, scratch, sample).ok());
    ASSERT_TRUE(plain.Run(jpeg, scratch, sample).ok());
    ASSERT_EQ(fused.outputs, plain.outputs);
  }
  graph.nodes[2].args = {{"low", Value(-5.0)}, {"high", Value(-4.0)}};
  const auto status = Runner(graph, 4).Run(jpeg, scratch);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("argument \"shorter\" is -4."));
}

// The position and the size of a window may differ per sample.
TEST(RowProgram, CutsAWindowOfEachSample) {
  Graph graph = ChainOf({{"uniform", {}, {}}});
  graph.nodes[2].inputs.clear();
  graph.nodes[2].args = {{"low", Value(0.0)}, {"high", Value(0.5)}};
  graph.nodes.push_back({"window",
                         {{1, 0}},
                         {{"y", NodeRef{2, 0}},
                          {"x", Value(30.0)},
                          {"height", Value(20.0)},
                          {"width", Value(31.0)}}});
  graph.outputs = {{"image", {3, 0}}};
  const std::string jpeg = MakeJpeg({.width = 100, .height = 80});
  Scratch scratch({});
  {
    Runner fused(graph, 4), plain(graph, 4, false);
    ASSERT_TRUE(fused.Run(jpeg, scratch).ok());
    ASSERT_TRUE(plain.Run(jpeg, scratch).ok());
    EXPECT_EQ(fused.outputs, plain.outputs);
    EXPECT_EQ(fused.schema.fields[0].shape, (Shape{20, 31, 3}));
  }
  const auto refusal = [&](double low, double high) {
    graph.nodes[2].args = {{"low", Value(low)}, {"high", Value(high)}};
    const auto status = Runner(graph, 4).Run(jpeg, scratch);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(Message(status));
  };
  EXPECT_THAT(refusal(-9, -8), HasSubstr("argument \"y\" is -8."));
  EXPECT_THAT(refusal(64.6, 64.9),
              HasSubstr("rows 65 to 85 and the columns 30 to 61, want at least "
                        "a pixel, inside the image of 80 × 100"));
}

// The whole image would need more memory than there is.
TEST(RowProgram, WindowsAndRegionsAreDecodedPartially) {
  const std::string jpeg = MakeJpeg({.width = 600, .height = 600});
  Scratch small({.max_scratch_bytes = 300'000});
  const Node resize{"resize", {}, {{"size", Ints{8}}}};
  Node region = resize;
  region.args["roi_start"] = Floats{500};
  region.args["roi_end"] = Floats{560};
  const std::vector<std::vector<Node>> chains = {
      {{"window",
        {},
        {{"y", Value(550.0)},
         {"x", Value(20.0)},
         {"height", Value(30.0)},
         {"width", Value(40.0)}}}},
      {{"random_crop", {}, {{"area", Floats{0.001, 0.01}}}}, resize},
      {region}};
  for (const auto& chain : chains) {
    Runner fused(ChainOf(chain), 1), plain(ChainOf(chain), 1, false);
    const absl::Status status = fused.Run(jpeg, small);
    EXPECT_TRUE(status.ok()) << Message(status);
    EXPECT_EQ(plain.Run(jpeg, small).code(),
              absl::StatusCode::kResourceExhausted);
    Scratch large({});
    ASSERT_TRUE(plain.Run(jpeg, large).ok());
    EXPECT_EQ(fused.outputs, plain.outputs);
  }
}

TEST(RowProgram, ARegionBeyondASampleIsABadSample) {
  const Graph graph = ChainOf({{"resize",
                                {},
                                {{"size", Ints{8}},
                                 {"roi_start", Floats{10, 20}},
                                 {"roi_end", Floats{90, 90}}}}});
  Runner runner(graph, 1);
  Scratch scratch({});
  EXPECT_TRUE(runner.Run(MakeJpeg({.width = 100, .height = 90}), scratch).ok());
  const auto status =
      runner.Run(MakeJpeg({.width = 100, .height = 80}), scratch);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("not inside the image of 80 × 100"));
}

TEST(RowProgram, DependsOnSeedEpochAndSampleOnly) {
  const std::string jpeg = MakeJpeg({.width = 200, .height = 160});
  Runner first(Train(32), 5), second(Train(32), 5), other(Train(32), 6);
  Scratch a({}), b({});
  ASSERT_TRUE(first.Run(jpeg, a, 1, 1).ok());
  ASSERT_TRUE(second.Run(MakeJpeg({}), b, 9, 9).ok());
  ASSERT_TRUE(second.Run(jpeg, b, 1, 1).ok());
  EXPECT_EQ(first.outputs, second.outputs);
  ASSERT_TRUE(second.Run(jpeg, b, 2, 1).ok());
  EXPECT_NE(first.outputs[0], second.outputs[0]);
  ASSERT_TRUE(second.Run(jpeg, b, 1, 2).ok());
  EXPECT_NE(first.outputs[0], second.outputs[0]);
  ASSERT_TRUE(other.Run(jpeg, b, 1, 1).ok());
  EXPECT_NE(first.outputs[0], other.outputs[0]);
  int32_t label;
  memcpy(&label, first.outputs[1].data(), sizeof label);
  EXPECT_EQ(label, 7);
  EXPECT_EQ(first.outputs[1], first.outputs[3]);
}

TEST(RowProgram, TwoViewsOfOneImage) {
  Graph graph = ChainOf({{"random_resized_crop", {}, {{"size", Ints{24}}}}});
  graph.nodes.push_back(
      {"random_resized_crop", {{1, 0}}, {{"size", Ints{24}}}});
  graph.nodes.push_back({"flip", {{2, 0}}, {}});
  graph.outputs = {{"a", {2, 0}}, {"b", {3, 0}}, {"c", {4, 0}}, {"d", {2, 0}}};
  const std::string jpeg = MakeJpeg({.width = 100, .height = 80});
  Runner fused(graph, 1), plain(graph, 1, false);
  Scratch scratch({});
  ASSERT_TRUE(fused.Run(jpeg, scratch).ok());
  ASSERT_TRUE(plain.Run(jpeg, scratch).ok());
  EXPECT_EQ(fused.outputs, plain.outputs);
  EXPECT_NE(fused.outputs[0], fused.outputs[1]);
  EXPECT_EQ(fused.outputs[0], fused.outputs[3]);
  for (int y = 0; y < 24; ++y)
    for (int x = 0; x < 24; ++x)
      ASSERT_EQ(memcmp(&fused.outputs[0][(y * 24 + x) * 3],
                       &fused.outputs[2][(y * 24 + 23 - x) * 3], 3),
                0);
}

TEST(RowProgram, TurnsImagesAsTheirExifSays) {
  // Eight files of one stored picture; all turned ones follow from the first.
  constexpr int kW = 48, kH = 32;
  Scratch scratch({});
  const auto decoded = [&](int orientation, bool orient) {
    const std::string jpeg =
        MakeJpeg({.width = kW, .height = kH, .orientation = orientation});
    const bool turned = orient && orientation >= 5;
    Graph graph = ChainOf(
        {{"crop", {}, {{"size", turned ? Ints{kW, kH} : Ints{kH, kW}}}}});
    graph.nodes[1].args["orient"] = Value(orient);
    Runner runner(graph, 1);
    EXPECT_TRUE(runner.Run(jpeg, scratch).ok());
    return runner.outputs[0];
  };
  const auto stored = decoded(1, true);
  const auto pixel = [&](int x, int y) { return &stored[(y * kW + x) * 3]; };
  for (int orientation = 1; orientation <= 8; ++orientation) {
    EXPECT_EQ(decoded(orientation, false), stored);
    const auto turned = decoded(orientation, true);
    const int width = orientation >= 5 ? kH : kW;
    for (int i = 0; i < kW * kH; ++i) {
      const int x = i % width, y = i / width;
      const std::byte* want[] = {
          nullptr,
          pixel(x % kW, y % kH),
          pixel((kW - 1 - x + kW) % kW, y % kH),
          pixel((kW - 1 - x + kW) % kW, (kH - 1 - y + kH) % kH),
          pixel(x % kW, (kH - 1 - y + kH) % kH),
          pixel(y % kW, x % kH),
          pixel(y % kW, (kH - 1 - x + kH) % kH),
          pixel((kW - 1 - y + kW) % kW, (kH - 1 - x + kH) % kH),
          pixel((kW - 1 - y + kW) % kW, x % kH)};
      ASSERT_EQ(memcmp(&turned[i * 3], want[orientation], 3), 0)
          << orientation << " " << x << "," << y;
    }
  }
}

TEST(RowProgram, NormalizesAsItsFormulaSays) {
  const std::string jpeg = MakeJpeg({.width = 20, .height = 20});
  const Node normalize{"normalize",
                       {},
                       {{"mean", Floats{10, 20, 30}},
                        {"std", Floats{2, 3, 7}},
                        {"scale", Value(3.0)},
                        {"shift", Value(0.25)}}};
  const Node crop{"crop", {}, {{"size", Ints{20, 20}}}};
  Runner plain(ChainOf({crop}), 1), result(ChainOf({crop, normalize}), 1);
  Scratch scratch({});
  ASSERT_TRUE(plain.Run(jpeg, scratch).ok());
  ASSERT_TRUE(result.Run(jpeg, scratch).ok());
  const float mean[] = {10, 20, 30}, std[] = {2, 3, 7};
  for (size_t i = 0; i < plain.outputs[0].size(); ++i) {
    float value;
    memcpy(&value, &result.outputs[0][4 * i], sizeof value);
    const float x = static_cast<float>(plain.outputs[0][i]) - mean[i % 3];
    ASSERT_EQ(value, x * static_cast<float>(3.0 / std[i % 3]) + 0.25f);
  }
}

TEST(RowProgram, SteadyStateAllocatesNothing) {
  const std::vector<std::string> images = Images();
  Graph graph = Train(64);
  graph.nodes.push_back(
      {"normalize", {{4, 0}}, {{"mean", Floats{1}}, {"std", Floats{2}}}});
  graph.nodes.push_back({"transpose", {{5, 0}}, {{"perm", Ints{2, 0, 1}}}});
  graph.outputs[0].second = {6, 0};
  Runner runner(graph, 3);
  Scratch scratch({});
  const auto pass = [&] {
    for (size_t i = 0; i < images.size(); ++i)
      for (uint64_t sample = 0; sample < 20; ++sample)
        ASSERT_TRUE(runner.Run(images[i], scratch, sample).ok());
  };
  pass();
  const uint64_t before = testing::AllocationsSoFar();
  pass();
  EXPECT_EQ(testing::AllocationsSoFar(), before);
}

TEST(RowProgram, ErrorsNameTheThingAndLeaveTheScratchUsable) {
  Graph graph = ChainOf({{"crop", {}, {{"size", Ints{100, 100}}}}});
  Runner runner(graph, 1);
  Scratch scratch({});
  const std::string good = MakeJpeg({.width = 120, .height = 110});
  const auto small =
      runner.Run(MakeJpeg({.width = 90, .height = 110}), scratch);
  EXPECT_EQ(small.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(small)), HasSubstr("90 × 110"));
  EXPECT_THAT(std::string(Message(small)), HasSubstr("100 × 100"));
  EXPECT_TRUE(runner.Run(good, scratch).ok());
  EXPECT_EQ(runner.Run(good.substr(0, good.size() / 2), scratch).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(runner.Run("a text", scratch).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      runner.Run(testing::MakeJpegClaiming(60'000, 60'000), scratch).code(),
      absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(runner.Run(good, scratch).ok());
}

TEST(RowProgram, CastsSaturateAndRoundHalvesToEven) {
  EXPECT_EQ(SaturatedInt(2.5, 0, 255), 2);
  EXPECT_EQ(SaturatedInt(3.5, 0, 255), 4);
  EXPECT_EQ(SaturatedInt(-0.5, -9, 9), 0);
  EXPECT_EQ(SaturatedInt(-1.5, -9, 9), -2);
  EXPECT_EQ(SaturatedInt(-1.4999, -9, 9), -1);
  EXPECT_EQ(SaturatedInt(300, 0, 255), 255);
  EXPECT_EQ(SaturatedInt(-INFINITY, 0, 255), 0);
  EXPECT_EQ(SaturatedInt(NAN, 0, 255), 0);
  EXPECT_EQ(SaturatedInt(1e30, INT64_MIN, INT64_MAX), INT64_MAX);
}

TEST(RowProgram, HalvesAreExact) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const float value = FloatOfHalf(static_cast<uint16_t>(half));
    if (std::isnan(value)) continue;
    ASSERT_EQ(HalfOf(value), half);
    // Between this value and the next: to the nearest, halves to even.
    const float next = FloatOfHalf(static_cast<uint16_t>(half + 1));
    if ((half & 0x7fff) >= 0x7bff || std::isnan(next)) continue;
    const float middle = (value + next) / 2;
    ASSERT_EQ(HalfOf(middle), half + (half & 1));
    ASSERT_EQ(HalfOf(std::nextafter(middle, value)), half);
    ASSERT_EQ(HalfOf(std::nextafter(middle, next)), half + 1);
  }
  EXPECT_EQ(HalfOf(65519.99f), 0x7bff);
  EXPECT_EQ(HalfOf(65520.0f), 0x7c00);
  EXPECT_EQ(HalfOf(1e-30f), 0);
  EXPECT_EQ(HalfOf(NAN), 0x7e00);
}

}  // namespace
}  // namespace leat::worker
