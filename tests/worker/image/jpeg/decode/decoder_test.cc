// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/decode/decoder.h"

#include <cstring>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/program/support.h"
#include "worker/image/formulas/pixel.h"
#include "worker/image/jpeg/scan/header.h"

namespace leat::worker {
namespace {

using testing::DecodedImage;
using ::testing::HasSubstr;
using testing::JpegColor;
using testing::JpegSpec;
using testing::MakeJpeg;

// Returns the window's pixels, 3 bytes each or 1.
absl::StatusOr<std::vector<uint8_t>> Decode(JpegDecoder& decoder,
                                            const std::string& jpeg,
                                            Rect window, bool gray,
                                            bool partial = true) {
  RETURN_IF_ERROR(decoder.Open(AsSpan(jpeg)));
  if (window.width == 0) {
    const ImageSize size = decoder.header().size;
    window = {0, 0, size.width, size.height};
  }
  RETURN_IF_ERROR(decoder.Start(window, gray, partial));
  std::vector<uint8_t> pixels;
  PixelRows rows;
  for (int64_t y = 0; y < window.height; y += rows.count) {
    RETURN_IF_ERROR(decoder.ReadRows(&rows));
    RETURN_IF_ERROR(decoder.damage());
    for (int i = 0; i < rows.count; ++i) {
      const uint8_t* row = rows.first + i * rows.stride;
      for (int64_t x = 0; x < window.width; ++x)
        for (int c = 0; c < (gray ? 1 : 3); ++c)
          pixels.push_back(row[x * (gray ? 1 : 4) + c]);
    }
  }
  return pixels;
}

std::vector<uint8_t> Crop(const DecodedImage& image, const Rect& window,
                          int channels) {
  std::vector<uint8_t> pixels;
  for (int64_t y = window.y; y < window.y + window.height; ++y) {
    const auto* row =
        image.pixels.data() + (y * image.width + window.x) * channels;
    pixels.insert(pixels.end(), row, row + window.width * channels);
  }
  return pixels;
}

Rect RandomRect(std::mt19937& random, int width, int height) {
  const auto below = [&](int n) {
    return std::uniform_int_distribution<int>(0, n - 1)(random);
  };
  Rect rect;
  // Small and large ones, and ones that touch the sides.
  rect.width = below(3) == 0 ? 1 + below(std::min(width, 9)) : 1 + below(width);
  rect.height =
      below(3) == 0 ? 1 + below(std::min(height, 9)) : 1 + below(height);
  rect.x = below(static_cast<int>(width - rect.width) + 1);
  rect.y = below(static_cast<int>(height - rect.height) + 1);
  if (below(4) == 0) rect.x = 0;
  if (below(4) == 0) rect.y = height - rect.height;
  return rect;
}

int CountDifferent(const std::string& jpeg, int windows, uint32_t seed) {
  std::mt19937 random(seed);
  JpegDecoder decoder({});
  int different = 0;
  for (const bool gray : {false, true}) {
    const DecodedImage whole = testing::PlainDecode(jpeg, gray);
    EXPECT_FALSE(whole.pixels.empty());
    if (whole.pixels.empty()) return windows;
    for (int i = 0; i < windows; ++i) {
      const Rect window = RandomRect(random, whole.width, whole.height);
      const auto part = Decode(decoder, jpeg, window, gray);
      EXPECT_TRUE(part.ok()) << Message(part.status());
      if (!part.ok() || *part != Crop(whole, window, gray ? 1 : 3)) ++different;
    }
  }
  return different;
}

TEST(JpegDecoder, PartialDecodingGivesTheBytesOfDecodeThenCrop) {
  const int samplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1},
                              {4, 2}, {1, 4}, {2, 4}, {3, 1}, {1, 3}};
  uint32_t seed = 1;
  for (const auto& [h, v] : samplings)
    for (const bool progressive : {false, true})
      for (const auto& [width, height] :
           {std::pair{131, 97}, std::pair{64, 64}, std::pair{17, 200},
            std::pair{7, 5}, std::pair{333, 41}}) {
        const std::string jpeg = MakeJpeg({.width = width,
                                           .height = height,
                                           .h = h,
                                           .v = v,
                                           .progressive = progressive,
                                           .seed = ++seed});
        EXPECT_EQ(CountDifferent(jpeg, 12, seed), 0)
            << h << "x" << v << " " << width << "x" << height << " "
            << progressive;
      }
}

TEST(JpegDecoder, PartialDecodingIsExactForOtherKindsToo) {
  uint32_t seed = 100;
  for (const JpegSpec& spec :
       {JpegSpec{.width = 200,
       .height = 150,
       .color = JpegColor::kGray,
       .h = 1,
       .v = 1},
        JpegSpec{.width = 200, .height = 150, .color = JpegColor::kGray},
        JpegSpec{.width = 200,
        .height = 150,
        .color = JpegColor::kRgb,
        .h = 1,
        .v = 1},
        // Gray depends on all three, and two are upsampled.
        JpegSpec{.width = 200,
        .height = 150,
        .color = JpegColor::kRgb,
        .h = 2,
        .v = 1},
        JpegSpec{.width = 200, .height = 150, .color = JpegColor::kRgb},
        JpegSpec{.width = 200,
        .height = 150,
        .color = JpegColor::kRgb,
        .h = 1,
        .v = 2},
        JpegSpec{.width = 200,
        .height = 150,
        .color = JpegColor::kRgb,
        .progressive = true},
        JpegSpec{.width = 200, .height = 150, .arithmetic = true},
        JpegSpec{.width = 200,
        .height = 150,
        .progressive = true,
        .arithmetic = true},
        JpegSpec{.width = 200, .height = 150, .restart_interval = 3},
        JpegSpec{.width = 200,
        .height = 150,
        .progressive = true,
        .restart_interval = 1},
        JpegSpec{.width = 200, .height = 150, .scans = 30}}) {
    EXPECT_EQ(CountDifferent(MakeJpeg(spec), 40, ++seed), 0) << seed;
  }
}

class JpegDecoderOf : public ::testing::TestWithParam<TestData> {};
INSTANTIATE_TEST_SUITE_P(Data, JpegDecoderOf, AllTestData(), TestDataName);

TEST_P(JpegDecoderOf, PhotosDecodesPartsExactly) {
  const auto photos = TestDataFiles(GetParam(), "imagenet-sample", 60);
  if (photos.empty()) GTEST_SKIP() << NoTestData(GetParam(), "imagenet-sample");
  uint32_t seed = 1000;
  for (const std::string& photo : photos)
    EXPECT_EQ(CountDifferent(photo, 6, ++seed), 0) << seed;
}

TEST_P(JpegDecoderOf, OddVariantsDecodesPartsExactly) {
  const auto files = TestDataFiles(GetParam(), "image-variants", 100);
  if (files.empty()) GTEST_SKIP() << NoTestData(GetParam(), "image-variants");
  uint32_t seed = 2000;
  int decoded = 0;
  for (const std::string& file : files) {
    JpegDecoder decoder({});
    if (!Decode(decoder, file, {}, false).ok()) continue;
    const bool inks = decoder.header().components == 4;  // no plain decoding
    ++decoded;
    if (inks) continue;
    EXPECT_EQ(CountDifferent(file, 30, ++seed), 0) << seed;
  }
  EXPECT_GE(decoded, GetParam() == TestData::kMade ? 34 : 8);
}

TEST(JpegDecoder, RefusesEveryDamagedFile) {
  const auto files = TestDataFiles(TestData::kMade, "image-damaged", 100);
  EXPECT_GE(files.size(), 15u);
  for (const std::string& file : files) {
    JpegDecoder decoder({});
    const auto status = Decode(decoder, file, {}, false).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status) || absl::IsDataLoss(status))
        << file.size() << " bytes: " << status;
  }
}

TEST(JpegDecoder, CmykIsConvertedByTheStatedFormula) {
  for (const JpegColor color : {JpegColor::kCmyk, JpegColor::kYcck}) {
    JpegDecoder decoder({});
    const std::string jpeg =
        MakeJpeg({.width = 90, .height = 70, .color = color, .h = 1, .v = 1});
    const auto whole = Decode(decoder, jpeg, {}, false);
    ASSERT_TRUE(whole.ok()) << Message(whole.status());
    const auto gray = Decode(decoder, jpeg, {}, true);
    ASSERT_TRUE(gray.ok());
    for (size_t i = 0; i < gray->size(); ++i)
      ASSERT_EQ((*gray)[i], Luma(whole->data() + 3 * i));
    const DecodedImage image{90, 70, *whole};
    std::mt19937 random(5);
    for (int i = 0; i < 50; ++i) {
      const Rect window = RandomRect(random, 90, 70);
      EXPECT_EQ(*Decode(decoder, jpeg, window, false), Crop(image, window, 3));
    }
  }
  const uint8_t full_ink[4] = {0, 255, 255, 255},
                no_ink[4] = {255, 255, 255, 255}, black[4] = {255, 255, 255, 0};
  uint8_t rgb[3];
  CmykToRgb(full_ink, rgb);
  EXPECT_THAT(rgb, ::testing::ElementsAre(0, 255, 255));
  CmykToRgb(no_ink, rgb);
  EXPECT_THAT(rgb, ::testing::ElementsAre(255, 255, 255));
  CmykToRgb(black, rgb);
  EXPECT_THAT(rgb, ::testing::ElementsAre(0, 0, 0));
}

TEST(JpegDecoder, ReadsTheOrientationOfEitherByteOrder) {
  JpegDecoder decoder({});
  for (int orientation = 0; orientation <= 8; ++orientation)
    for (const bool big : {false, true}) {
      const std::string jpeg =
          MakeJpeg({.orientation = orientation, .exif_big_endian = big});
      ASSERT_TRUE(decoder.Open(AsSpan(jpeg)).ok());
      EXPECT_EQ(decoder.header().orientation, std::max(1, orientation));
    }
}

TEST(JpegDecoder, ACutFileIsAnErrorWhereverItIsCut) {
  JpegDecoder decoder({});
  for (const bool progressive : {false, true}) {
    const std::string jpeg = MakeJpeg({.width = 40,
                                       .height = 30,
                                       .progressive = progressive,
                                       .orientation = 6});
    for (size_t size = 0; size < jpeg.size(); ++size) {
      const auto result = Decode(decoder, jpeg.substr(0, size), {}, false);
      ASSERT_FALSE(result.ok()) << size;
      const auto want = size < 3 ? absl::StatusCode::kInvalidArgument
                                 : absl::StatusCode::kDataLoss;
      ASSERT_EQ(result.status().code(), want)
          << size << Message(result.status());
    }
    EXPECT_TRUE(Decode(decoder, jpeg, {}, false).ok());
    EXPECT_THAT(std::string(Message(
                    Decode(decoder, jpeg.substr(0, jpeg.size() - 2), {}, false)
                        .status())),
                HasSubstr("premature end"));
  }
}

TEST(JpegDecoder, SurvivesFlippedBitsAndGarbage) {
  std::mt19937 random(3);
  JpegDecoder decoder({.max_pixels = 1'000'000});
  int good = 0, bad = 0;
  for (const JpegSpec& spec :
       {JpegSpec{.width = 70, .height = 50, .restart_interval = 2},
        JpegSpec{.width = 70, .height = 50, .progressive = true},
        JpegSpec{.width = 70, .height = 50, .arithmetic = true},
        JpegSpec{.width = 70, .height = 50, .color = JpegColor::kYcck}}) {
    const std::string original = MakeJpeg(spec);
    for (int i = 0; i < 400; ++i) {
      std::string jpeg = original;
      const int flips = 1 + static_cast<int>(random() % 4);
      for (int f = 0; f < flips; ++f)
        jpeg[random() % jpeg.size()] ^= static_cast<char>(1 << (random() % 8));
      if (i % 8 == 0)
        jpeg.insert(random() % jpeg.size(), random() % 50, '\xff');
      (Decode(decoder, jpeg, {}, i % 2 == 0).ok() ? good : bad)++;
    }
    EXPECT_TRUE(Decode(decoder, original, {}, false).ok());
  }
  EXPECT_GT(bad, 100);
  for (int i = 0; i < 300; ++i) {
    std::string garbage("\xff\xd8\xff");
    for (size_t n = random() % 300; n > 0; --n)
      garbage.push_back(static_cast<char>(random()));
    EXPECT_FALSE(Decode(decoder, garbage, {}, false).ok());
  }
}

TEST(JpegDecoder, LimitsAreCheckedFromTheHeader) {
  JpegDecoder decoder({.max_pixels = 1'000'000, .max_side = 5'000});
  const auto error = [&](int width, int height) {
    const auto status =
        decoder.Open(AsSpan(testing::MakeJpegClaiming(width, height)));
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    return std::string(Message(status));
  };
  EXPECT_THAT(error(65'500, 1), HasSubstr("65500 × 1"));
  EXPECT_THAT(error(4'000, 4'000), HasSubstr("1000000 pixels"));
  const std::string bomb =
      MakeJpeg({.width = 600, .height = 600, .progressive = true});
  JpegDecoder small({.max_scratch_bytes = 100'000});
  EXPECT_EQ(small.Open(AsSpan(bomb)).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(JpegDecoder, ManyScansAreOverTheLimit) {
  const std::string bomb = MakeJpeg({.width = 64, .height = 64, .scans = 200});
  JpegDecoder decoder({});
  const auto result = Decode(decoder, bomb, {}, false);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(result.status())), HasSubstr("64"));
  JpegDecoder patient({.max_scans = 300});
  EXPECT_TRUE(Decode(patient, bomb, {}, false).ok());
}

TEST(JpegDecoder, SaysWhatOtherFilesLookLike) {
  JpegDecoder decoder({});
  const auto error = [&](std::string bytes) {
    const auto status = decoder.Open(AsSpan(bytes));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(Message(status));
  };
  EXPECT_THAT(error(""), HasSubstr("empty"));
  EXPECT_THAT(error("hello, world\n"), HasSubstr("text"));
  EXPECT_THAT(error("\x89PNG\r\n\x1a\n...."), HasSubstr("PNG"));
  EXPECT_THAT(error(std::string("RIFF\0\0\0\0WEBPVP8 ", 16)),
              HasSubstr("WebP"));
  EXPECT_THAT(error("GIF89a"), HasSubstr("GIF"));
  EXPECT_THAT(error(std::string(100, '\0')), HasSubstr("zero"));
  EXPECT_THAT(error("\x01\x02\xf0\x99"), HasSubstr("01 02 f0 99"));
  EXPECT_THAT(error("version https://git-lfs.github.com/spec/v1"),
              HasSubstr("LFS"));
}

}  // namespace
}  // namespace leat::worker
