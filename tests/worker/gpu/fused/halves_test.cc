// SPDX-License-Identifier: Apache-2.0
//
// Rows of images that were decoded at a smaller scale.
#include <random>

#include "gtest/gtest.h"
#include "tests/worker/gpu/fused/graphs.h"
#include "tests/worker/gpu/fused/support.h"

namespace leat::worker {
namespace {

RowInput AnySample() {
  static const StoredSample stored = StoredImage({}, 7);
  return {.fields = stored.fields};
}

// RGB or gray pixels.
struct Picture {
  ImageSize size;
  int channels = 3;
  std::vector<uint8_t> pixels;
  uint8_t* At(int64_t x, int64_t y) {
    return pixels.data() + (y * size.width + x) * channels;
  }
};

Picture RandomPicture(ImageSize size, int channels, std::mt19937& random) {
  Picture picture{size, channels, {}};
  picture.pixels.resize(
      static_cast<size_t>(size.width * size.height * channels));
  for (uint8_t& byte : picture.pixels) byte = static_cast<uint8_t>(random());
  return picture;
}

// Returns the image of `size`, with each pixel of the small one repeated.
Picture Enlarged(Picture& small, ImageSize size, int halvings) {
  Picture large = small;
  large.size = size;
  large.pixels.resize(
      static_cast<size_t>(size.width * size.height * small.channels));
  const auto group = [halvings](int64_t at, int64_t length) {
    return std::min(at >> halvings, (length >> halvings) - 1);
  };
  for (int64_t y = 0; y < size.height; ++y)
    for (int64_t x = 0; x < size.width; ++x)
      std::copy_n(small.At(group(x, size.width), group(y, size.height)),
                  small.channels, large.At(x, y));
  return large;
}

// Returns a row's fields; halvings 0: from the whole image.
std::vector<std::vector<uint8_t>> Compute(const FusedProgram& program,
                                          const BatchSchema& schema,
                                          Picture& picture, StoredSize stored,
                                          int exif, int halvings) {
  HostRunner host;
  Block block(program.BlockBytes(1));
  FusedGroup group;
  FusedScratch scratch;
  EXPECT_TRUE(group.Begin(program, 1, block.span()).ok());
  auto part = group.PrepareRow(0, AnySample(), stored, exif, &scratch);
  EXPECT_TRUE(part.ok()) << part.status();
  if (halvings > 0) {
    EXPECT_LE(halvings, group.most_halvings(0));
    const size_t used = group.used_bytes();
    part = group.HalveRow(0, halvings, &scratch);
    EXPECT_EQ(group.used_bytes(), used);
  }
  EXPECT_TRUE(part->x >= 0 && part->y >= 0 &&
              part->x + part->width <= picture.size.width &&
              part->y + part->height <= picture.size.height);
  FusedSource source{
      .address =
          host.Upload(std::as_bytes(std::span(std::as_const(picture.pixels)))),
      .held = {0, 0, picture.size.width, picture.size.height},
      .pitch = picture.size.width * picture.channels,
      .pixel_bytes = picture.channels};
  EXPECT_TRUE(group.BindSource(0, source).ok());
  std::vector<std::vector<uint8_t>> fields;
  for (const Field& field : schema.fields) fields.emplace_back(field.row_bytes);
  for (size_t f = 0; f < fields.size(); ++f)
    group.BindOutput(0, f, DeviceAddress::Of(fields[f].data()));
  EXPECT_TRUE(
      host.Launch(program.kernel(), program.launch(1), block.address()).ok());
  return fields;
}

// Two views; one is mirrored and reads a part.
Graph TwoViews(std::mt19937& random, bool gray) {
  using Ints = std::vector<int64_t>;
  const auto word = [&](std::initializer_list<const char*> of) {
    return Value(std::string(*(of.begin() + random() % of.size())));
  };
  Graph graph;
  graph.nodes = {
      {"readers.image_folder", {}, {{"path", Value(std::string("/data"))}}},
      {"decode",
       {{0, 0}},
       {{"output", Value(std::string(gray ? "gray" : "rgb"))}}},
      {"random_resized_crop",
       {{1, 0}},
       {{"size", Ints{1 + static_cast<int64_t>(random() % 9),
                      1 + static_cast<int64_t>(random() % 9)}},
        {"area", std::vector<double>{0.6, 1}},
        {"interpolation", word({"linear", "cubic", "lanczos3"})}}},
      {"resize",
       {{1, 0}},
       {{"size", Ints{8, 7}},
        {"interpolation", word({"linear", "cubic", "lanczos3"})}}},
      {"crop", {{3, 0}}, {{"size", Ints{4, 5}}, {"pos_y", Value(1.0)}}},
      {"flip",
       {{4, 0}},
       {{"horizontal", Value(random() % 2 == 0)},
        {"vertical", Value(random() % 2 == 0)}}}};
  graph.outputs = {{"one", {2, 0}}, {"two", {5, 0}}};
  return graph;
}

TEST(FusedGroup, ComputesASmallerImageAsTheWholeOneThatItStandsFor) {
  std::mt19937 random(11);
  int halved[kMostHalvings + 1] = {};
  for (int round = 0; round < 400; ++round) {
    const bool gray = random() % 3 == 0;
    const Graph graph = TwoViews(random, gray);
    const BatchSchema schema = Check(graph)->schema;
    const auto program = Fuse(graph);
    const StoredSize stored{16 + random() % 150, 16 + random() % 150};
    const int exif = 1 + static_cast<int>(random() % 8);
    Block block(program->BlockBytes(1));
    FusedGroup group;
    FusedScratch scratch;
    ASSERT_TRUE(group.Begin(*program, 1, block.span()).ok());
    ASSERT_TRUE(group.PrepareRow(0, AnySample(), stored, exif, &scratch).ok());
    const int halvings = group.most_halvings(0);
    ++halved[halvings];
    if (halvings == 0) continue;
    Picture small =
        RandomPicture(Halved(stored, halvings), program->channels(), random);
    Picture whole = Enlarged(small, stored, halvings);
    const auto got = Compute(*program, schema, small, stored, exif, halvings);
    const auto want = Compute(*program, schema, whole, stored, exif, 0);
    for (size_t f = 0; f < want.size(); ++f)
      for (size_t i = 0; i < want[f].size(); ++i)
        ASSERT_NEAR(got[f][i], want[f][i], 1)
            << "round " << round << " field " << f << " byte " << i;
  }
  for (int halvings = 1; halvings <= kMostHalvings; ++halvings)
    EXPECT_GT(halved[halvings], 20) << halvings;
}

TEST(FusedGroup, IsHalvedAsOftenAsAllItsViewsBear) {
  std::mt19937 random(1);
  Graph graph = TwoViews(random, false);
  graph.nodes[2] = {
      "resize", {{1, 0}}, {{"size", std::vector<int64_t>{30, 30}}}};
  const auto most = [&](int64_t width, int64_t height) {
    const auto program = Fuse(graph);
    Block block(program->BlockBytes(1));
    FusedGroup group;
    FusedScratch scratch;
    EXPECT_TRUE(group.Begin(*program, 1, block.span()).ok());
    EXPECT_TRUE(
        group.PrepareRow(0, AnySample(), {height, width}, 6, &scratch).ok());
    return group.most_halvings(0);
  };
  EXPECT_EQ(most(240, 240), 3);
  EXPECT_EQ(most(239, 240), 2);
  EXPECT_EQ(most(59, 2000), 0);
  // One view copies pixels, so nothing may be halved.
  graph.nodes[4].inputs = {{1, 0}};
  EXPECT_EQ(most(240, 240), 0);
}

}  // namespace
}  // namespace leat::worker
