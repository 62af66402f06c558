// SPDX-License-Identifier: Apache-2.0
//
// Rows of pipelines with decode(reduce="auto"): which scale is decoded, that
// the pixels are those of libjpeg's image at that scale in the window, and that
// they depend on nothing else.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/image_maker.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/jpeg/decode/damaged_jpegs.h"
#include "tests/worker/image/jpeg/forms/random_keeper.h"
#include "tests/worker/image/program/support.h"
#include "worker/image/base/whole_decodes.h"
#include "worker/image/program/scratch_state.h"

namespace leat::worker {
namespace {

using testing::JpegColor;
using testing::JpegSpec;
using testing::MakeJpeg;
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

Value Text(const char* text) { return Value(std::string(text)); }

Graph Reduced(std::vector<Node> last, bool gray = false) {
  Graph graph = ChainOf(std::move(last), gray);
  graph.nodes[1].args["reduce"] = Text("auto");
  return graph;
}

Node Window(const Rect& of) {
  return {"window",
          {},
          {{"y", Value(static_cast<double>(of.y))},
           {"x", Value(static_cast<double>(of.x))},
           {"height", Value(static_cast<double>(of.height))},
           {"width", Value(static_cast<double>(of.width))}}};
}
Node Resize(int64_t height, int64_t width, const char* rule = "pillow") {
  return {"resize", {}, {{"size", Ints{height, width}}, {"rule", Text(rule)}}};
}

// --- A plain way to the same pixels -----------------------------------------

// A pixel of the smaller image, by its position in the whole image as turned.
class TurnedImage {
 public:
  TurnedImage(const std::string& jpeg, StoredSize stored, int exif, bool gray,
              int halvings)
      : image_(testing::PlainDecode(jpeg, gray, halvings)),
        stored_(stored),
        turn_(Orientation::Of(exif)),
        side_(1 << halvings),
        channels_(gray ? 1 : 3) {}

  int channels() const { return channels_; }
  int side() const { return side_; }
  int Count(bool across) const {
    return IsX(across) ? image_.width : image_.height;
  }
  // Returns the middle of the i-th group along an axis of the stored image, as
  // a position along the turned image's axis.
  double Middle(bool across, int i) const {
    const double middle = (i + 0.5) * side_;
    const bool x = IsX(across);
    const auto length = static_cast<double>(x ? stored_.width : stored_.height);
    return (x ? turn_.mirror_x : turn_.mirror_y) ? length - middle : middle;
  }
  // Returns a value, by groups along the turned image's axes.
  int At(int across, int down, int channel) const {
    const int x = turn_.transposed ? down : across;
    const int y = turn_.transposed ? across : down;
    return image_.pixels[static_cast<size_t>(
        (y * image_.width + x) * channels_ + channel)];
  }

 private:
  bool IsX(bool across) const { return across != turn_.transposed; }

  testing::DecodedImage image_;
  StoredSize stored_;
  Orientation turn_;
  int side_, channels_;
};

// Weights of groups for output `i` of `count`, made from [begin, end) of the
// whole image: a triangle, as wide as the output's step.
std::vector<std::pair<int, double>> WeightsOf(const TurnedImage& image,
                                              bool across, int64_t begin,
                                              int64_t end, int64_t count,
                                              int64_t i) {
  const double step =
      static_cast<double>(end - begin) / static_cast<double>(count);
  const double middle =
      static_cast<double>(begin) + (static_cast<double>(i) + 0.5) * step;
  std::vector<std::pair<int, double>> weights;
  double sum = 0;
  for (int group = 0; group < image.Count(across); ++group) {
    const double at = image.Middle(across, group);
    if (at < static_cast<double>(begin) || at > static_cast<double>(end))
      continue;
    const double weight = 1 - std::fabs(at - middle) / step;
    if (weight <= 0) continue;
    weights.emplace_back(group, weight);
    sum += weight;
  }
  for (auto& [group, weight] : weights) weight /= sum;
  return weights;
}

// The largest error of any value of `row`.
double MostOff(const TurnedImage& image, const Rect& window, int64_t height,
               int64_t width, const std::vector<std::byte>& row) {
  double most = 0;
  size_t at = 0;
  for (int64_t y = 0; y < height; ++y) {
    const auto down =
        WeightsOf(image, false, window.y, window.y + window.height, height, y);
    for (int64_t x = 0; x < width; ++x) {
      const auto across =
          WeightsOf(image, true, window.x, window.x + window.width, width, x);
      for (int c = 0; c < image.channels(); ++c, ++at) {
        double want = 0;
        for (const auto& [v, weight] : down)
          for (const auto& [u, of_row] : across)
            want += weight * of_row * image.At(u, v, c);
        most = std::max(most, std::fabs(want - std::to_integer<int>(row[at])));
      }
    }
  }
  return most;
}

std::vector<JpegSpec> Kinds() {
  std::vector<JpegSpec> kinds;
  for (const auto& [h, v] :
       {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 3}})
    kinds.push_back({.width = 139 + h, .height = 99 + v, .h = h, .v = v});
  for (int exif = 2; exif <= 8; ++exif)
    kinds.push_back({.width = 137 + exif, .height = 101, .orientation = exif});
  kinds.push_back({.width = 133, .height = 190, .progressive = true});
  kinds.push_back(
      {.width = 131, .height = 77, .color = JpegColor::kGray, .h = 1, .v = 1});
  kinds.push_back({.width = 9, .height = 8});
  kinds.push_back({.width = 1, .height = 1});
  kinds.push_back({.width = 3, .height = 260});
  return kinds;
}

TEST(ReducedRows, ArePixelsOfLibjpegsSmallerImageWhereTheWindowLies) {
  std::mt19937 random(7);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  Scratch scratch({});
  int times[kMostHalvings + 1] = {};
  for (JpegSpec spec : Kinds()) {
    spec.seed = static_cast<uint32_t>(random());
    const std::string jpeg = MakeJpeg(spec);
    const StoredSize stored(spec.height, spec.width);
    const int exif = spec.orientation == 0 ? 1 : spec.orientation;
    const TurnedSize size = Orientation::Of(exif).Turned(stored);
    for (int i = 0; i < 16; ++i) {
      Rect window{.width = 1 + below(size.width),
                  .height = 1 + below(size.height)};
      if (i == 0) window = {0, 0, size.width, size.height};
      window.x = below(3) == 0 ? 0 : below(size.width - window.width + 1);
      window.y = below(3) == 0 ? size.height - window.height
                               : below(size.height - window.height + 1);
      const int64_t height =
          std::max<int64_t>(1, window.height / (1 + below(12)));
      const int64_t width =
          std::max<int64_t>(1, window.width / (1 + below(12)));
      const bool gray = below(3) == 0;
      int halvings = 0;
      while (halvings < kMostHalvings &&
             window.width >= width << (halvings + 1) &&
             window.height >= height << (halvings + 1))
        ++halvings;
      Runner runner(Reduced({Window(window), Resize(height, width)}, gray), 1);
      const absl::Status status = runner.Run(jpeg, scratch);
      ASSERT_TRUE(status.ok()) << Message(status);
      ASSERT_EQ(scratch.state()->decoder.size(), Halved(stored, halvings));
      const TurnedImage image(jpeg, stored, exif, gray, halvings);
      // Rows between the passes are rounded to bytes.
      ASSERT_LE(MostOff(image, window, height, width, runner.outputs[0]), 1.2)
          << spec.width << " × " << spec.height << " turned by " << exif
          << ", halved " << halvings << " times";
      ++times[halvings];
    }
  }
  for (const int count : times) EXPECT_GT(count, 20);
}

// --- Independence of everything else ----------------------------------------

// Chains with a resize, as large as images are small.
std::vector<Node> RandomChain(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  const char* const filters[] = {"linear", "nearest", "cubic", "lanczos3",
                                 "gaussian"};
  std::vector<Node> chain;
  if (below(4) == 0)
    chain.push_back({"random_crop", {}, {{"area", Floats{0.4, 1}}}});
  if (below(4) == 0)
    chain.push_back(
        {"crop", {}, {{"size", Ints{60 + below(9), 60 + below(9)}}}});
  const Value size(Ints{4 + below(30), 4 + below(30)});
  Node resize{below(2) == 0 ? "resize" : "random_resized_crop", {}, {}};
  resize.args = {{"size", size},
                 {"interpolation", Text(filters[below(5)])},
                 {"antialias", Value(below(4) != 0)},
                 {"rule", Text(below(3) == 0 ? "dali" : "pillow")}};
  if (resize.op == "resize" && below(3) == 0) {
    resize.args["roi_start"] = Floats{0.1, 0.2};
    resize.args["roi_end"] = Floats{0.9, 0.7};
    resize.args["roi_relative"] = true;
  }
  if (resize.op == "resize" && below(3) == 0)
    resize.args["subpixel_scale"] = true;
  chain.push_back(std::move(resize));
  if (below(2) == 0)
    chain.push_back({"flip",
                     {},
                     {{"horizontal", Value(below(2) == 0)},
                      {"vertical", Value(below(2) == 0)}}});
  if (below(3) == 0) chain.push_back({"crop", {}, {{"size", Ints{3, 2}}}});
  return chain;
}

std::vector<std::string> Files() {
  std::vector<std::string> files;
  uint32_t seed = 40;
  for (JpegSpec spec : Kinds()) {
    if (spec.width == 1) continue;  // its pixels are smaller than any form
    spec.seed = ++seed;
    files.push_back(MakeJpeg(spec));
  }
  files.push_back(MakeJpeg(
      {.width = 99, .height = 101, .color = JpegColor::kYcck, .h = 1, .v = 1}));
  files.push_back(MakeJpeg({.width = 90, .height = 70, .restart_interval = 3}));
  const size_t sound = files.size();
  for (size_t i = 0; i < sound; i += 4) {
    JpegDamager damager(files[i], ++seed);
    for (std::string& copy : damager.Copies(24))
      files.push_back(std::move(copy));
  }
  return files;
}

// Neither fusion, which decodes windows, nor forms, nor the thread's earlier
// decodes matter; and errors are the same, too.
TEST(ReducedRows, AreTheSameWholeAndInPartAndByForms) {
  const std::vector<std::string> files = Files();
  const char* const colours[] = {"rgb", "gray", "bgr", "ycbcr"};
  std::mt19937 random(11);
  RandomKeeper keeper(6);
  Scratch scratch({}), other({});
  int failed = 0, sound = 0;
  for (uint64_t round = 0; round < 60; ++round) {
    Graph graph = Reduced(RandomChain(random));
    graph.nodes[1].args["output"] = Text(colours[round % 4]);
    Runner fused(graph, round), plain(graph, round, false);
    for (size_t i = random() % 3; i < files.size(); i += 1 + random() % 5) {
      const StoredSample stored = StoredImage(AsSpan(files[i]), 7);
      const absl::Status status = fused.program->Run({.seed = fused.seed,
                                                      .sample = i,
                                                      .fields = stored.fields,
                                                      .forms = &keeper},
                                                     scratch, fused.spans);
      const absl::Status want = plain.Run(files[i], other, i);
      ASSERT_EQ(status, want) << CanonicalText(graph) << " file " << i;
      failed += !status.ok();
      if (!status.ok()) continue;
      ++sound;
      ASSERT_EQ(fused.outputs, plain.outputs)
          << CanonicalText(graph) << " file " << i;
    }
  }
  EXPECT_GT(keeper.used, 100);
  EXPECT_GT(keeper.made, 100);
  EXPECT_GT(keeper.grown, 20);
  EXPECT_GT(failed, 50);
  EXPECT_GT(sound, 400);
}

// If nothing is left to shrink, the image is that of full resolution.
TEST(ReducedRows, AreThoseOfFullResolutionWhereNoScaleIsLarge) {
  const std::string jpeg = MakeJpeg({.width = 150, .height = 110});
  Scratch scratch({});
  for (const Ints& size : {Ints{56, 70}, Ints{110, 150}, Ints{300, 300}}) {
    Runner reduced(Reduced({{"resize", {}, {{"size", size}}}}), 1);
    Runner full(ChainOf({{"resize", {}, {{"size", size}}}}), 1);
    ASSERT_TRUE(reduced.Run(jpeg, scratch).ok());
    ASSERT_TRUE(full.Run(jpeg, scratch).ok());
    EXPECT_EQ(reduced.outputs, full.outputs);
  }
}

// Operators after the resize do not matter.
TEST(ReducedRows, DecodeTheSmallestScaleThatTheResizeBears) {
  const std::string jpeg =
      MakeJpeg({.width = 800, .height = 640, .orientation = 6});
  Scratch scratch({});
  const auto decoded = [&](int64_t side, std::vector<Node> last = {}) {
    last.insert(last.begin(), Resize(side, side));
    EXPECT_TRUE(Runner(Reduced(std::move(last)), 1).Run(jpeg, scratch).ok());
    return scratch.state()->decoder.size();
  };
  EXPECT_EQ(decoded(80), StoredSize(80, 100));
  EXPECT_EQ(decoded(81), StoredSize(160, 200));
  EXPECT_EQ(decoded(320), StoredSize(320, 400));
  EXPECT_EQ(decoded(321), StoredSize(640, 800));
  EXPECT_EQ(decoded(80, {{"crop", {}, {{"size", Ints{70}}}}, Resize(75, 75)}),
            StoredSize(80, 100));
}

TEST(ReducedRows, OfFormatsWithoutScalesAreDecodedWholeAndCounted) {
  WholeDecodes counts;
  Scratch scratch({.whole_decodes = &counts});
  const testing::Picture picture = testing::MakePicture(90, 70, 3);
  const std::string png = testing::MakePng(picture, {.orientation = 6});
  Runner reduced(Reduced({Resize(8, 9)}), 1), full(ChainOf({Resize(8, 9)}), 1);
  ASSERT_TRUE(full.Run(png, scratch).ok());
  EXPECT_EQ(counts.of(ImageFormat::kPng), 0u);
  for (uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(reduced.Run(png, scratch).ok());
    EXPECT_EQ(counts.of(ImageFormat::kPng), i);
  }
  EXPECT_EQ(reduced.outputs, full.outputs);
  ASSERT_TRUE(reduced.Run(testing::MakeBmp(picture), scratch).ok());
  EXPECT_EQ(counts.of(ImageFormat::kBmp), 1u);
  ASSERT_TRUE(reduced.Run(MakeJpeg({}), scratch).ok());
  EXPECT_EQ(counts.of(ImageFormat::kJpeg), 0u);
}

// --- Near full resolution ----------------------------------------------------

class ReducedRowsOf : public ::testing::TestWithParam<TestData> {};
INSTANTIATE_TEST_SUITE_P(Data, ReducedRowsOf, AllTestData(), TestDataName);

TEST_P(ReducedRowsOf, PhotosAreNearThoseOfFullResolution) {
  const auto photos = TestDataFiles(GetParam(), "imagenet-sample", 60);
  if (photos.empty()) GTEST_SKIP() << NoTestData(GetParam(), "imagenet-sample");
  Scratch scratch({});
  for (const auto& [side, most] :
       {std::pair{32, 2.5}, std::pair{64, 2.0}, std::pair{128, 1.5}}) {
    const std::vector<Node> chain = {
        {"random_resized_crop", {}, {{"size", Ints{side, side}}}}};
    Runner reduced(Reduced(chain), 3), full(ChainOf(chain), 3);
    double sum = 0;
    uint64_t sample = 0, values = 0;
    for (const std::string& photo : photos) {
      ASSERT_TRUE(reduced.Run(photo, scratch, ++sample).ok());
      ASSERT_TRUE(full.Run(photo, scratch, sample).ok());
      values += full.outputs[0].size();
      for (size_t i = 0; i < full.outputs[0].size(); ++i)
        sum += std::abs(std::to_integer<int>(reduced.outputs[0][i]) -
                        std::to_integer<int>(full.outputs[0][i]));
    }
    EXPECT_LT(sum / static_cast<double>(values), most) << side;
    RecordProperty(fmt::format("mean_difference_{}", side),
                   fmt::format("{:.3f}", sum / static_cast<double>(values)));
  }
}

}  // namespace
}  // namespace leat::worker
