// SPDX-License-Identifier: Apache-2.0
#include "worker/image/views/encoded_image.h"

#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <tuple>

#include "core/cluster/fault.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/image_maker.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/program/support.h"
#include "worker/image/formulas/pixel.h"
#include "worker/image/jpeg/scan/header.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using testing::MakeBmp;
using testing::MakeJpeg;
using testing::MakeJpeg2000;
using testing::MakePicture;
using testing::MakePng;
using testing::MakeTiff;
using testing::MakeWebp;
using testing::Picture;

constexpr const char* kColours[] = {"rgb", "gray", "bgr", "ycbcr"};

std::vector<std::string> Images() {
  const Picture rgb = MakePicture(61, 45, 3), gray = MakePicture(61, 45, 1);
  return {MakePng(rgb),
          MakePng(rgb, {.orientation = 6}),
          MakePng(gray, {.orientation = 3}),
          MakePng(MakePicture(61, 45, 4, 16)),
          MakeBmp(rgb),
          MakeWebp(rgb, {.lossless = false, .orientation = 5}),
          MakeTiff(gray, {.orientation = 8}),
          MakeTiff(rgb, {.compression = 5, .tile = 16}),
          MakeJpeg2000(gray),
          MakeJpeg2000(rgb),
          MakeJpeg({.width = 61, .height = 45}),
          MakeJpeg({.width = 61, .height = 45, .orientation = 7})};
}

Graph Decode(const char* colours, std::vector<Node> last) {
  Graph graph = ChainOf(std::move(last));
  graph.nodes[1].args["output"] = Value(std::string(colours));
  return graph;
}

Graph Peek(bool orient) {
  Graph graph = ChainOf({});
  graph.nodes[1] = {"peek_shape", {{0, 0}}, {{"orient", Value(orient)}}};
  return graph;
}

TEST(PeekShape, IsThatOfWhatIsDecoded) {
  constexpr int64_t kChannels[] = {3, 3, 1, 3, 3, 3, 1, 3, 1, 3, 3, 3};
  const std::vector<std::string> images = Images();
  Runner turned(Peek(true), 1), stored(Peek(false), 1);
  Scratch scratch({.max_pixels = 1});  // what decoding would need
  for (size_t i = 0; i < images.size(); ++i) {
    const auto shape = [&](Runner& runner) {
      const absl::Status status = runner.Run(images[i], scratch);
      EXPECT_TRUE(status.ok()) << Message(status);
      std::array<int64_t, 3> shape;
      memcpy(shape.data(), runner.outputs[0].data(), sizeof shape);
      return shape;
    };
    const bool transposed = i == 1 || i == 5 || i == 6 || i == 11;
    EXPECT_EQ(shape(stored), (std::array<int64_t, 3>{45, 61, kChannels[i]}));
    EXPECT_EQ(shape(turned),
              (std::array<int64_t, 3>{transposed ? 61 : 45,
                                      transposed ? 45 : 61, kChannels[i]}))
        << i;
  }
}

TEST(PeekShape, RefusesWhatIsNoImageAndTakesTheLargest) {
  Runner runner(Peek(true), 1);
  Scratch scratch({});
  const auto status = runner.Run("a text", scratch);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("peek_shape"));
  EXPECT_FALSE(runner.Run("", scratch).ok());
  EXPECT_FALSE(
      runner.Run(MakePng(MakePicture(9, 9, 3)).substr(0, 25), scratch).ok());
  EXPECT_TRUE(
      runner.Run(testing::MakeJpegClaiming(60'000, 60'000), scratch).ok());
  Graph graph = Peek(true);
  graph.nodes.push_back({"peek_shape", {{1, 0}}, {}});
  graph.outputs[0].second.node = 2;
  EXPECT_THAT(std::string(Message(Check(graph).status())),
              HasSubstr("want an encoded image"));
}

TEST(Formats, OneThatIsOffIsTheWorkersFaultAndNotTheSamples) {
  Runner decodes(ChainOf({{"resize", {}, {{"size", std::vector<int64_t>{8}}}}}),
                 1);
  Runner peeks(Peek(true), 1);
  Scratch few({.formats = *ImageFormats::Parse("jpeg,png")}), all({});
  const std::tuple<std::string, std::string, bool> kFiles[] = {
      {"jpeg", MakeJpeg({.width = 61, .height = 45}), true},
      {"png", MakePng(MakePicture(61, 45, 3)), true},
      {"webp", MakeWebp(MakePicture(61, 45, 3)), false},
      {"bmp", MakeBmp(MakePicture(61, 45, 3)), false},
      {"tiff", MakeTiff(MakePicture(61, 45, 3)), false},
      {"jpeg2000", MakeJpeg2000(MakePicture(61, 45, 3)), false}};
  for (const auto& [name, file, on] : kFiles)
    for (Runner* runner : {&decodes, &peeks}) {
      EXPECT_TRUE(runner->Run(file, all).ok()) << name;
      const absl::Status status = runner->Run(file, few);
      EXPECT_EQ(status.ok(), on) << name;
      if (on) continue;
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ(FaultOf(status), Fault::kWorker);
      EXPECT_THAT(std::string(Message(status)),
                  HasSubstr("want " + name + " in its --formats jpeg,png"));
    }
}

TEST(Formats, AreReadByName) {
  EXPECT_EQ(ImageFormats().ToString(), "jpeg,png,webp,bmp,tiff,jpeg2000");
  const auto some = ImageFormats::Parse("tiff,jpeg,jpeg");
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->ToString(), "jpeg,tiff");
  EXPECT_TRUE(some->has(ImageFormat::kTiff));
  EXPECT_FALSE(some->has(ImageFormat::kBmp));
  const std::pair<const char*, const char*> kWrong[] = {
      {"", "\"\" is no image format"},
      {"jpeg,", "\"\" is no image format"},
      {"jpeg,gif", "\"gif\" is no image format"},
      {"jpeg, png", "\" png\" is no image format"},
      {"JPEG", "\"JPEG\" is no image format"},
      {"png,bmp", "want jpeg among them"}};
  for (const auto& [text, want] : kWrong) {
    const absl::Status status = ImageFormats::Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(want));
    EXPECT_THAT(std::string(Message(status)), HasSubstr("--formats \""));
  }
}

TEST(StoredBytes, AreThoseOfTheFileWhateverItIs) {
  Graph graph = Peek(true);
  graph.nodes[1] = {"stored_bytes", {{0, 0}}, {}};
  graph.nodes.push_back(
      {"slice",
       {{1, 0}},
       {{"start", std::vector<int64_t>{0}},
        {"shape", std::vector<int64_t>{4}},
        {"out_of_bounds_policy", Value(std::string("pad"))}}});
  graph.outputs[0].second.node = 2;
  Runner runner(graph, 1);
  Scratch scratch({});
  const std::pair<std::string, std::string> kCut[] = {
      {"text", "text"}, {"\xff\xd8", {"\xff\xd8\0\0", 4}}, {"longer", "long"}};
  for (const auto& [file, head] : kCut) {
    const absl::Status status = runner.Run(file, scratch);
    ASSERT_TRUE(status.ok()) << Message(status);
    EXPECT_EQ(memcmp(runner.outputs[0].data(), head.data(), 4), 0) << file;
  }
}

Node Op(const char* op, std::vector<int64_t> size) {
  return {op, {}, {{"size", std::move(size)}}};
}

TEST(EncodedImage, FusionIsInvisibleForEveryFormatAndColour) {
  const std::vector<std::vector<Node>> chains = {
      {Op("random_resized_crop", {24}), {"flip", {}, {}}},
      {Op("resize", {30, 40}), Op("crop", {20, 20})},
      {Op("crop", {30, 33}), {"flip", {}, {{"vertical", Value(true)}}}},
      {{"flip", {}, {}}, Op("crop", {45, 45}), Op("resize", {16})}};
  const std::vector<std::string> images = Images();
  Scratch scratch({}), other({});
  for (const char* colours : kColours)
    for (const auto& chain : chains) {
      const Graph graph = Decode(colours, chain);
      Runner fused(graph, 3), plain(graph, 3, false);
      for (size_t i = 0; i < images.size(); ++i) {
        const auto status = fused.Run(images[i], scratch, i);
        ASSERT_TRUE(status.ok()) << Message(status);
        ASSERT_TRUE(plain.Run(images[i], other, i).ok());
        ASSERT_EQ(fused.outputs, plain.outputs)
            << CanonicalText(graph) << " image " << i;
      }
    }
}

// Decodes a whole image of 61 × 45 through a program.
std::vector<uint8_t> Whole(const std::string& file, const char* colours) {
  Runner runner(Decode(colours, {Op("crop", {45, 61})}), 1);
  Scratch scratch({});
  const auto status = runner.Run(file, scratch);
  EXPECT_TRUE(status.ok()) << Message(status);
  const auto* bytes =
      reinterpret_cast<const uint8_t*>(runner.outputs[0].data());
  return {bytes, bytes + runner.outputs[0].size()};
}

TEST(EncodedImage, ColoursAreMadeOfRgb) {
  const Picture rgb = MakePicture(61, 45, 3), gray = MakePicture(61, 45, 1);
  for (const std::string& file : {MakePng(rgb), MakePng(gray), MakeWebp(rgb),
                                  MakeJpeg({.width = 61, .height = 45})}) {
    const auto pixels = Whole(file, "rgb");
    const auto bgr = Whole(file, "bgr"), ycbcr = Whole(file, "ycbcr");
    for (size_t i = 0; i < pixels.size(); i += 3) {
      const double r = pixels[i], g = pixels[i + 1], b = pixels[i + 2];
      ASSERT_EQ(bgr[i], b);
      ASSERT_EQ(bgr[i + 1], g);
      ASSERT_EQ(bgr[i + 2], r);
      // Within the error of rounding a tie the other way.
      ASSERT_NEAR(ycbcr[i], 16 + (65.481 * r + 128.553 * g + 24.966 * b) / 255,
                  0.501);
      ASSERT_NEAR(ycbcr[i + 1],
                  128 + (-37.797 * r - 74.203 * g + 112 * b) / 255, 0.501);
      ASSERT_NEAR(ycbcr[i + 2], 128 + (112 * r - 93.786 * g - 18.214 * b) / 255,
                  0.501);
    }
  }
  const auto pixels = Whole(MakePng(rgb), "rgb");
  const auto luma = Whole(MakePng(rgb), "gray");
  for (size_t i = 0; i < luma.size(); ++i)
    ASSERT_EQ(luma[i], Luma(&pixels[3 * i]));
  EXPECT_EQ(Whole(MakePng(gray), "gray"), Expected(gray));
}

TEST(EncodedImage, YcbcrStaysInTheStudiosRange) {
  for (int i = 0; i < 8; ++i) {
    const uint8_t rgb[3] = {static_cast<uint8_t>(i & 1 ? 255 : 0),
                            static_cast<uint8_t>(i & 2 ? 255 : 0),
                            static_cast<uint8_t>(i & 4 ? 255 : 0)};
    uint8_t ycbcr[3];
    RgbToYcbcr(rgb, ycbcr);
    EXPECT_GE(ycbcr[0], 16);
    EXPECT_LE(ycbcr[0], 235);
    for (int c = 1; c < 3; ++c) {
      EXPECT_GE(ycbcr[c], 16);
      EXPECT_LE(ycbcr[c], 240);
    }
  }
}

// As in DALI: the 16 bits at the value, whatever type the entry has.
TEST(EncodedImage, AnOrientationOfAnyTypeAndCountIsTaken) {
  const auto exif = [](bool little, uint16_t type, uint32_t count,
                       std::string value) {
    const auto number = [little](uint32_t n, int bytes) {
      std::string text;
      for (int i = 0; i < bytes; ++i)
        text += static_cast<char>(n >> 8 * (little ? i : bytes - 1 - i));
      return text;
    };
    value.resize(4);
    return std::string(little ? "II" : "MM") + number(42, 2) + number(8, 4) +
           number(1, 2) + number(0x112, 2) + number(type, 2) +
           number(count, 4) + value + number(0, 4);
  };
  const auto of = [](const std::string& block) {
    return TiffOrientation(std::as_bytes(std::span(block)));
  };
  const std::string little_6("\6\0", 2), big_6("\0\6", 2);
  for (const uint16_t type : {3, 4, 8, 9, 1, 77}) {
    EXPECT_EQ(of(exif(true, type, 1, little_6)), 6) << type;
    EXPECT_EQ(of(exif(false, type, 1, big_6)), 6) << type;
  }
  EXPECT_EQ(of(exif(true, 3, 2, little_6 + little_6)), 6);
  EXPECT_EQ(of(exif(false, 4, 1, std::string("\0\0\0\6", 4))), 1);
  EXPECT_EQ(of(exif(true, 3, 1, std::string("\11\0", 2))), 1);  // there is no 9
  const std::string block = exif(true, 3, 1, little_6);
  for (size_t size = 0; size < 20; ++size)
    EXPECT_EQ(of(block.substr(0, size)), 1) << size;
}

TEST(EncodedImage, IsTurnedAsItsOrientationSays) {
  const Picture picture = MakePicture(61, 45, 3);
  Scratch scratch({});
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const std::string& file :
         {MakePng(picture, {.orientation = orientation}),
          MakeTiff(picture, {.orientation = orientation}),
          MakeWebp(picture, {.orientation = orientation})}) {
      const int64_t width = orientation >= 5 ? 45 : 61;
      Runner runner(Decode("rgb", {Op("crop", {106 - width, width})}), 1);
      ASSERT_TRUE(runner.Run(file, scratch).ok());
      for (int64_t y = 0; y < 106 - width; ++y)
        for (int64_t x = 0; x < width; ++x) {
          const auto o = Orientation::Of(orientation);
          int64_t u = o.transposed ? y : x, v = o.transposed ? x : y;
          if (o.mirror_x) u = 60 - u;
          if (o.mirror_y) v = 44 - v;
          ASSERT_EQ(static_cast<int>(runner.outputs[0][(y * width + x) * 3]),
                    picture.At(static_cast<int>(u), static_cast<int>(v), 0));
        }
    }
}

TEST(EncodedImage, ErrorsNameTheFormat) {
  Runner runner(Decode("rgb", {Op("crop", {4})}), 1);
  Scratch scratch({});
  const auto error = [&](const std::string& file) {
    return std::string(Message(runner.Run(file, scratch)));
  };
  const std::string png = MakePng(MakePicture(61, 45, 3));
  EXPECT_THAT(error(png.substr(0, 500)), HasSubstr("truncated PNG"));
  EXPECT_THAT(error("no image at all"), HasSubstr("looks like text; want"));
  EXPECT_EQ(runner.Run("GIF89a", scratch).code(),
            absl::StatusCode::kInvalidArgument);
  // No state is left over.
  EXPECT_TRUE(runner.Run(png, scratch).ok());
}

TEST(EncodedImage, WorkingMemoryIsLimited) {
  Runner runner(Decode("rgb", {Op("crop", {4})}), 1);
  Scratch scratch({.max_scratch_bytes = 5'000});
  const auto status = runner.Run(MakePng(MakePicture(61, 45, 3)), scratch);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace leat::worker
