// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/layout/decode_shape.h"

#include <random>
#include <tuple>

#include "gtest/gtest.h"
#include "worker/compute/gpu_worker.h"

namespace leat::worker {
namespace {

JpegDecoder::Header HeaderOf(int64_t width, int64_t height, int h = 2,
                             int v = 2) {
  JpegDecoder::Header header;
  header.size = {height, width};
  header.components = h == 0 ? 1 : 3;
  header.h_samp = {static_cast<uint8_t>(h), 1, 1};
  header.v_samp = {static_cast<uint8_t>(v), 1, 1};
  return header;
}

View Resized(Rect from, ImageSize to, Filter filter = Filter::kLinear,
             bool antialias = true) {
  View view({.height = from.y + from.height, .width = from.x + from.width});
  view.Crop(from);
  view.Resize(to, Filters{filter, filter, antialias});
  return view;
}

TEST(MostHalvings, IsWhatIsLeftToShrinkAlongBothAxes) {
  // Window and size (width × height), halvings.
  const std::tuple<int64_t, int64_t, int64_t, int64_t, int> cases[] = {
      {448, 448, 224, 224, 1},   {447, 448, 224, 224, 0},
      {448, 447, 224, 224, 0},   {449, 900, 224, 224, 1},
      {896, 896, 224, 224, 2},   {896, 895, 224, 224, 1},
      {1792, 1792, 224, 224, 3}, {1791, 1792, 224, 224, 2},
      {9000, 9000, 224, 224, 3}, {224, 224, 224, 224, 0},
      {100, 100, 224, 224, 0},   {5000, 3, 10, 1, 1},
      {5000, 3, 10, 2, 0},       {5000, 8, 10, 1, 3},
      {1, 1, 1, 1, 0},           {2, 2, 1, 1, 1},
      {8, 8, 1, 1, 3},           {8, 7, 1, 1, 2},
      {7, 7, 1, 1, 2},           {3, 5000, 3, 10, 0}};
  for (const auto& [w, h, to_w, to_h, halvings] : cases)
    for (const Filter filter :
         {Filter::kLinear, Filter::kCubic, Filter::kLanczos3})
      EXPECT_EQ(MostHalvings(Resized({17, 3, w, h},
                                     {.height = to_h, .width = to_w}, filter)),
                halvings)
          << w << " × " << h << " to " << to_w << " × " << to_h;
}

TEST(MostHalvings, IsNoneWithoutAnAntialiasedResize) {
  const Rect all{0, 0, 900, 900};
  EXPECT_EQ(MostHalvings(Resized(all, {50, 50})), 3);
  EXPECT_EQ(MostHalvings(Resized(all, {50, 50}, Filter::kNearest)), 0);
  EXPECT_EQ(MostHalvings(Resized(all, {50, 50}, Filter::kLinear, false)), 0);
  View view({900, 900});
  EXPECT_EQ(MostHalvings(view), 0);
  view.Crop({10, 10, 20, 20});
  view.Flip(true, false);
  EXPECT_EQ(MostHalvings(view), 0);
  // Crops and mirrors after the resize make no difference.
  view = Resized(all, {50, 50});
  view.Flip(true, true);
  view.Crop({10, 10, 5, 5});
  EXPECT_EQ(MostHalvings(view), 3);
}

TEST(DecodeShapes, TheRegionIsTheWindowAndAnImcuMoreOnEachSide) {
  const auto region = [](const JpegDecoder::Header& header, StoredRect window) {
    const DecodeShapes shapes = ShapesOf(header, window, 0);
    EXPECT_TRUE(shapes.shapes[0].cut);
    EXPECT_EQ(shapes.count, 2u);
    EXPECT_EQ(shapes.shapes[1], WholeImage(header.size));
    return shapes.shapes[0].region;
  };
  EXPECT_EQ(region(HeaderOf(640, 480), {100, 200, 50, 60}),
            (Rect{80, 176, 96, 112}));
  EXPECT_EQ(region(HeaderOf(640, 480, 1, 1), {100, 200, 50, 60}),
            (Rect{88, 192, 72, 80}));
  EXPECT_EQ(region(HeaderOf(640, 480, 2, 1), {100, 200, 50, 60}),
            (Rect{80, 192, 96, 80}));
  EXPECT_EQ(region(HeaderOf(640, 480, 0, 2), {100, 200, 50, 60}),
            (Rect{88, 192, 72, 80}));  // one component: single blocks
  // Already on iMCU edges.
  EXPECT_EQ(region(HeaderOf(640, 480), {32, 32, 16, 16}),
            (Rect{16, 16, 48, 48}));
  // At the image's edges there are no further iMCUs.
  EXPECT_EQ(region(HeaderOf(641, 479), {0, 0, 1, 1}), (Rect{0, 0, 32, 32}));
  EXPECT_EQ(region(HeaderOf(641, 479), {640, 478, 1, 1}),
            (Rect{624, 448, 17, 31}));
  EXPECT_EQ(region(HeaderOf(5000, 3), {2500, 1, 1, 1}), (Rect{2480, 0, 48, 3}));
}

TEST(DecodeShapes, ThereIsNoRegionWhereItIsTheWholeImage) {
  for (const auto& [width, height] : {std::pair(1, 1), {5000, 3}, {33, 33}}) {
    const DecodeShapes shapes =
        ShapesOf(HeaderOf(width, height), {0, 0, width, height}, 0);
    ASSERT_EQ(shapes.count, 1u);
    EXPECT_EQ(shapes.shapes[0], WholeImage({height, width}));
    EXPECT_FALSE(shapes.shapes[0].cut);
  }
  EXPECT_EQ(ShapesOf(HeaderOf(33, 33), {16, 16, 1, 1}, 0).count, 1u);
}

TEST(DecodeShapes, FewerPixelsComeFirst) {
  const JpegDecoder::Header header = HeaderOf(1600, 1200, 1, 1);
  // A small crop is less than all at ½; a large one is more.
  DecodeShapes shapes = ShapesOf(header, {800, 600, 400, 400}, 1);
  ASSERT_EQ(shapes.count, 3u);
  EXPECT_TRUE(shapes.shapes[0].cut);
  EXPECT_EQ(shapes.shapes[1].halvings, 1);
  EXPECT_EQ(shapes.shapes[2], WholeImage(header.size));
  shapes = ShapesOf(header, {100, 100, 1000, 1000}, 1);
  ASSERT_EQ(shapes.count, 3u);
  EXPECT_EQ(shapes.shapes[0].halvings, 1);
  EXPECT_EQ(shapes.shapes[0].region, (Rect{0, 0, 1600, 1200}));
  EXPECT_TRUE(shapes.shapes[1].cut);
  // Equally many pixels: the region, whose bytes are those of the whole image.
  shapes = ShapesOf(header, {0, 0, 792, 592}, 1);
  EXPECT_EQ(shapes.shapes[0].region, (Rect{0, 0, 800, 600}));
  EXPECT_TRUE(shapes.shapes[0].cut);
}

TEST(DecodeShapes, ARegionIsNeverReduced) {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    const int64_t width = 1 + random() % 900, height = 1 + random() % 900;
    const JpegDecoder::Header header =
        HeaderOf(width, height, random() % 3, 1 + random() % 2);
    StoredRect window{random() % width, random() % height, 0, 0};
    window.width = 1 + random() % (width - window.x);
    window.height = 1 + random() % (height - window.y);
    const DecodeShapes shapes = ShapesOf(header, window, random() % 4);
    ASSERT_GE(shapes.count, 1u);
    EXPECT_EQ(shapes.shapes[shapes.count - 1], WholeImage(header.size));
    for (const DecodeShape& shape : shapes.span()) {
      const Rect& r = shape.region;
      EXPECT_FALSE(shape.cut && shape.halvings > 0);
      EXPECT_EQ(shape.cut, r != (Rect{0, 0, width, height}));
      EXPECT_TRUE(r.x >= 0 && r.y >= 0 && r.x + r.width <= width &&
                  r.y + r.height <= height);
      // At least a pixel between the window and an edge inside the image.
      EXPECT_TRUE(r.x == 0 || r.x + 8 <= window.x);
      EXPECT_TRUE(r.y == 0 || r.y + 8 <= window.y);
      EXPECT_TRUE(r.x + r.width == width ||
                  r.x + r.width >= window.x + window.width + 8);
      EXPECT_TRUE(r.y + r.height == height ||
                  r.y + r.height >= window.y + window.height + 8);
    }
  }
}

TEST(DecodeShapes, HalvesAreRoundedUp) {
  EXPECT_EQ(Halved({375, 500}, 1), (ImageSize{.height = 188, .width = 250}));
  EXPECT_EQ(Halved({1, 8}, 3), (ImageSize{.height = 1, .width = 1}));
  EXPECT_EQ(Halved({9, 17}, 3), (ImageSize{.height = 2, .width = 3}));
  EXPECT_EQ(DecodedSize({.region = {0, 0, 17, 9}, .halvings = 2}),
            (ImageSize{.height = 3, .width = 5}));
}

// A slot has this much beyond its images, so that the last one has room, too.
TEST(DecodeShape, TheRoomOfAnImageIsBounded) {
  const auto pixels = static_cast<int64_t>(kMaxNvjpegImageBytes / 3);
  for (const int64_t side : {1, 2, 15, 16, 17, 511, 512, 513, 5'793, 65'535}) {
    const int64_t other = std::min<int64_t>(pixels / side, 65'535);
    for (const StoredSize& size :
         {StoredSize{side, other}, StoredSize{other, side}})
      for (int halvings = 0; halvings <= 3; ++halvings) {
        DecodeShape shape = WholeImage(size);
        shape.halvings = halvings;
        const ImageSize room = RoomOf(shape), decoded = DecodedSize(shape);
        EXPECT_GE(room.width, decoded.width);
        EXPECT_GE(room.height, decoded.height);
        EXPECT_EQ(room.width % 16 + room.height % 16, 0);
        EXPECT_LE(3 * room.width * room.height,
                  3 * side * other + static_cast<int64_t>(kMostRoomBytes));
      }
  }
}

}  // namespace
}  // namespace leat::worker
