// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/image_maker.h"
#include "tests/worker/image/program/support.h"
#include "worker/image/codecs/codec.h"

namespace leat::worker {
namespace {

using ::testing::AnyOf;
using testing::BmpSpec;
using ::testing::Each;
using testing::Expected;
using ::testing::HasSubstr;
using testing::Jpeg2000Spec;
using testing::MakeBmp;
using testing::MakeJpeg2000;
using testing::MakePicture;
using testing::MakePng;
using testing::MakeTiff;
using testing::MakeWebp;
using testing::Picture;
using testing::SmallImageFiles;
using testing::TiffSpec;

struct Image {
  ImageHeader header;
  std::vector<uint8_t> pixels;
};

absl::StatusOr<Image> Decode(const std::string& file,
                             const ImageLimits& limits = {}) {
  const Codec* const codec = FindCodec(AsSpan(file));
  if (codec == nullptr) return UnknownImage(AsSpan(file));
  Image image;
  ASSIGN_OR_RETURN(image.header, codec->read_header(AsSpan(file), limits));
  image.pixels.resize(image.header.bytes());
  RETURN_IF_ERROR(
      codec->decode(AsSpan(file), image.header, limits, image.pixels.data()));
  return image;
}

// The file must decode to exactly the picture.
void ExpectPicture(const std::string& file, const Picture& picture,
                   bool palette = false) {
  const auto image = Decode(file);
  ASSERT_TRUE(image.ok()) << Message(image.status());
  EXPECT_EQ(image->header.size, (ImageSize{picture.height, picture.width}));
  EXPECT_EQ(image->pixels, Expected(picture, palette));
}

std::string ErrorOf(const std::string& file, const ImageLimits& limits = {}) {
  const auto image = Decode(file, limits);
  return image.ok() ? "decoded" : std::string(Message(image.status()));
}

TEST(Codecs, PngOfEveryKindIsExact) {
  for (const bool interlaced : {false, true}) {
    for (const int bits : {1, 2, 4, 8, 16}) {
      SCOPED_TRACE(bits);
      const Picture gray = MakePicture(37, 21, 1, bits);
      ExpectPicture(MakePng(gray, {.interlaced = interlaced}), gray);
      ExpectPicture(
          MakePng(gray, {.interlaced = interlaced, .transparent = true}), gray);
      for (const bool transparent : {false, true})
        if (bits <= 8)
          ExpectPicture(MakePng(gray, {.palette = true,
                                       .interlaced = interlaced,
                                       .transparent = transparent}),
                        gray, true);
      for (const int channels : {2, 3, 4}) {
        if (bits < 8) continue;
        const Picture picture = MakePicture(37, 21, channels, bits);
        ExpectPicture(MakePng(picture, {.interlaced = interlaced}), picture);
      }
    }
  }
}

TEST(Codecs, BmpOfEveryKindIsExact) {
  for (const bool top_down : {false, true})
    for (const int width : {1, 8, 37}) {
      const auto spec = [&](int bits) {
        return BmpSpec{.bits = bits, .top_down = top_down};
      };
      for (const int bits : {1, 2, 4, 8}) {
        const Picture indices = MakePicture(width, 9, 1, bits);
        ExpectPicture(MakeBmp(indices, spec(bits)), indices, true);
        if (!top_down)
          ExpectPicture(MakeBmp(indices, {.bits = bits, .os2 = true}), indices,
                        true);
      }
      const Picture rgb = MakePicture(width, 9, 3);
      ExpectPicture(MakeBmp(rgb, spec(24)), rgb);
      ExpectPicture(MakeBmp(rgb, spec(32)), rgb);
      const Picture five = MakePicture(width, 9, 3, 5);
      ExpectPicture(MakeBmp(five, spec(16)), five);
      ExpectPicture(MakeBmp(five, {.bits = 16,
                                   .top_down = top_down,
                                   .masks = {0x1f, 0x3e0, 0x7c00}}),
                    five);
      ExpectPicture(MakeBmp(rgb, {.bits = 32,
                                  .top_down = top_down,
                                  .masks = {0xff, 0xff00, 0xff000000}}),
                    rgb);
    }
  for (const int bits : {4, 8}) {
    const Picture indices = MakePicture(61, 30, 1, bits);
    ExpectPicture(MakeBmp(indices, {.bits = bits, .run_length = true}), indices,
                  true);
  }
}

TEST(Codecs, BmpRunsMaySkipPixels) {
  const Picture indices = MakePicture(4, 3, 1, 8);
  std::string file = MakeBmp(indices, {.bits = 8, .run_length = true});
  const size_t pixels_at = 14 + 40 + 1024;
  file.resize(pixels_at);
  // The bottom row: one pixel; then one up, two to the right; end.
  file += std::string("\x01\x05\0\x02\x01\x01\x01\x07\0\x01", 10);
  const auto image = Decode(file);
  ASSERT_TRUE(image.ok()) << Message(image.status());
  const auto red = [&](int x, int y) { return image->pixels[(y * 4 + x) * 3]; };
  EXPECT_EQ(red(0, 2), testing::PaletteColour(5, 0));
  EXPECT_EQ(red(2, 1), testing::PaletteColour(7, 0));
  EXPECT_EQ(red(0, 0), testing::PaletteColour(0, 0));
}

TEST(Codecs, TiffOfEveryKindIsExact) {
  for (const int compression : {1, 5, 8, 32773, 32946, 50000})
    for (const bool big_endian : {false, true})
      for (const int tile : {0, 16})
        for (const bool planar : {false, true}) {
          const TiffSpec spec{.compression = compression,
                              .tile = tile,
                              .planar = planar,
                              .big_endian = big_endian,
                              .big = planar};
          for (const int channels : {1, 2, 3, 4})
            for (const int bits : {8, 16}) {
              const Picture picture = MakePicture(37, 21, channels, bits);
              ExpectPicture(MakeTiff(picture, spec), picture);
            }
          for (const int bits : {1, 2, 4, 8}) {
            const Picture picture = MakePicture(37, 21, 1, bits);
            ExpectPicture(MakeTiff(picture, spec), picture);
            TiffSpec palette = spec;
            palette.photometric = 3;
            ExpectPicture(MakeTiff(picture, palette), picture, true);
          }
        }
}

TEST(Codecs, TiffOfFaxesIsExact) {
  const Picture picture = MakePicture(40, 21, 1, 1);
  for (const int compression : {2, 3, 4})
    ExpectPicture(MakeTiff(picture, {.compression = compression}), picture);
}

TEST(Codecs, TiffMayBeginWithWhite) {
  for (const int bits : {1, 4, 8, 16}) {
    const Picture picture = MakePicture(37, 21, 1, bits);
    const auto image = Decode(MakeTiff(picture, {.photometric = 0}));
    ASSERT_TRUE(image.ok());
    auto want = Expected(picture);
    for (uint8_t& byte : want) byte = 255 - byte;
    EXPECT_EQ(image->pixels, want);
  }
}

TEST(Codecs, TiffOfInksIsTurnedToRgb) {
  const Picture inks = MakePicture(37, 21, 4);
  const auto image = Decode(MakeTiff(inks, {.photometric = 5}));
  ASSERT_TRUE(image.ok()) << Message(image.status());
  for (int y = 0; y < 21; ++y)
    for (int x = 0; x < 37; ++x)
      for (int c = 0; c < 3; ++c)
        ASSERT_EQ(image->pixels[(y * 37 + x) * 3 + c],
                  std::lround((255 - inks.At(x, y, c)) *
                              (255 - inks.At(x, y, 3)) / 255.0));
}

double WorstOf(const Image& image, const std::vector<uint8_t>& want) {
  double sum = 0;
  for (size_t i = 0; i < want.size(); ++i)
    sum += std::abs(image.pixels[i] - want[i]);
  return sum / static_cast<double>(want.size());
}

// A picture that lossy formats preserve.
Picture Smooth(int channels) {
  Picture picture{48, 32, channels, 8, {}};
  for (int y = 0; y < 32; ++y)
    for (int x = 0; x < 48; ++x)
      for (int c = 0; c < channels; ++c)
        picture.samples.push_back(static_cast<uint16_t>(x * 4 + y + c * 9));
  return picture;
}

TEST(Codecs, LossyKindsAreClose) {
  const Picture picture = Smooth(3);
  const auto want = Expected(picture);
  for (const std::string& file :
       {MakeWebp(picture, {.lossless = false}),
        MakeTiff(picture, {.compression = 7, .rows = 16}),
        MakeTiff(picture, {.compression = 7, .tile = 16})}) {
    const auto image = Decode(file);
    ASSERT_TRUE(image.ok()) << Message(image.status());
    ASSERT_EQ(image->pixels.size(), want.size());
    EXPECT_LT(WorstOf(*image, want), 4);
  }
}

TEST(Codecs, WebpWithoutLossIsExactAlsoWhereTransparent) {
  for (const int channels : {3, 4}) {
    const Picture picture = MakePicture(37, 21, channels);
    ExpectPicture(MakeWebp(picture), picture);
  }
}

TEST(Codecs, Jpeg2000WithoutLossIsExact) {
  for (const bool boxed : {false, true})
    for (const int bits : {1, 5, 8, 12, 16})
      for (const int channels : {1, 2, 3, 4}) {
        SCOPED_TRACE(fmt::format("{} {} {}", boxed, bits, channels));
        const Picture picture = MakePicture(37, 21, channels, bits);
        ExpectPicture(MakeJpeg2000(picture, {.boxed = boxed}), picture);
        if (channels % 2 == 1)
          ExpectPicture(
              MakeJpeg2000(picture,
                           {.boxed = boxed, .is_signed = bits > 1, .tile = 16}),
              picture);
      }
}

TEST(Codecs, Jpeg2000OfLumaAndChromaIsTurnedToRgb) {
  const Picture ycc = Smooth(3);
  for (const int subsampling : {1, 2}) {
    const auto image =
        Decode(MakeJpeg2000(ycc, {.sycc = true, .subsampling = subsampling}));
    ASSERT_TRUE(image.ok()) << Message(image.status());
    for (int y = 0; y < ycc.height; ++y)
      for (int x = 0; x < ycc.width; ++x) {
        const int u = x / subsampling * subsampling;
        const int v = y / subsampling * subsampling;
        const double cr = ycc.At(u, v, 2) - 128;
        ASSERT_NEAR(image->pixels[(y * ycc.width + x) * 3],
                    std::clamp(ycc.At(x, y, 0) + 1.402 * cr, 0.0, 255.0), 1);
      }
  }
}

TEST(Codecs, OrientationIsRead) {
  const Picture picture = MakePicture(19, 17, 3);
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const std::string& file :
         {MakePng(picture, {.orientation = orientation}),
          MakeTiff(picture, {.orientation = orientation}),
          MakeWebp(picture, {.orientation = orientation})}) {
      const auto image = Decode(file);
      ASSERT_TRUE(image.ok()) << Message(image.status());
      EXPECT_EQ(image->header.orientation, orientation);
      EXPECT_EQ(image->header.size, (ImageSize{17, 19}));
      EXPECT_EQ(image->pixels, Expected(picture));
    }
}

TEST(Codecs, ACutFileIsAnErrorWhereverItIsCut) {
  for (const auto& [name, file] : SmallImageFiles()) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(Decode(file).ok()) << ErrorOf(file);
    for (size_t size = 0; size < file.size(); ++size) {
      const auto image = Decode(file.substr(0, size));
      ASSERT_FALSE(image.ok()) << size << " of " << file.size();
      ASSERT_THAT(image.status().code(),
                  AnyOf(absl::StatusCode::kDataLoss,
                        absl::StatusCode::kInvalidArgument))
          << ErrorOf(file.substr(0, size));
      ASSERT_FALSE(Message(image.status()).empty());
    }
  }
}

TEST(Codecs, SurvivesEveryFlippedByteInSilence) {
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  for (const auto& [name, file] : SmallImageFiles()) {
    int bad = 0;
    for (size_t i = 0; i < file.size(); ++i) {
      std::string damaged = file;
      damaged[i] =
          static_cast<char>(damaged[i] ^ (i % 3 == 0 ? 0xff : 1 << i % 8));
      const auto image = Decode(
          damaged, {.max_pixels = 100'000, .max_scratch_bytes = 20'000'000});
      if (!image.ok()) ++bad;
    }
    EXPECT_GT(bad, 5) << name;
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

// The file with some bytes replaced.
std::string Patched(std::string file, size_t at, std::string_view bytes) {
  return file.replace(at, bytes.size(), bytes);
}

TEST(Codecs, LimitsAreCheckedFromTheHeader) {
  const Picture picture = MakePicture(19, 17, 3);
  const std::string tall("\0\0\xea\x60", 4), little_tall("\x60\xea\0\0", 4);
  const std::string tiff = MakeTiff(picture);
  const size_t directory = static_cast<uint8_t>(tiff[4]) +
                           256 * static_cast<uint8_t>(tiff[5]) + 2 + 8;
  const std::string j2k = MakeJpeg2000(picture, {.boxed = false});
  for (const std::string& file :
       {Patched(Patched(MakePng(picture), 16, tall), 20, tall),
        Patched(Patched(MakeBmp(picture), 18, little_tall), 22, little_tall),
        Patched(Patched(tiff, directory, little_tall), directory + 12,
                little_tall),
        Patched(Patched(j2k, 8, tall + tall), 24, tall + tall)}) {
    const auto image = Decode(file);
    EXPECT_EQ(image.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(ErrorOf(file), HasSubstr("60000 × 60000"));
    EXPECT_THAT(ErrorOf(file, {.max_side = 100}), HasSubstr("a side over"));
  }
  EXPECT_THAT(ErrorOf(MakeWebp(picture), {.max_pixels = 300}),
              HasSubstr("WebP is 19 × 17: over the limit of 300 pixels"));
  const auto clear = MakeWebp(MakePicture(19, 17, 4), {.lossless = false});
  for (const std::string& file : {MakeWebp(picture), clear})
    EXPECT_THAT(ErrorOf(file, {.max_scratch_bytes = 1000}),
                HasSubstr("bytes, over the limit of 1000"));
}

// A codestream whose header demands tables of many gigabytes.
TEST(Codecs, Jpeg2000OfManyTinyPartsIsOverTheLimit) {
  const std::string j2k =
      MakeJpeg2000(MakePicture(19, 17, 1), {.boxed = false});
  const std::string side("\0\0\x27\x10", 4);  // 10000
  std::string bomb = j2k;
  for (const size_t at : {8u, 12u, 24u, 28u}) bomb = Patched(bomb, at, side);
  const size_t cod = bomb.find("\xff\x52");
  const std::string usual = bomb;
  EXPECT_THAT(ErrorOf(usual), ::testing::Not(HasSubstr("needs about")));
  // Code-blocks of 4 × 4.
  bomb = Patched(usual, cod + 10, std::string("\0\0", 2));
  EXPECT_THAT(ErrorOf(bomb), HasSubstr("JPEG 2000 needs about"));
  // The same if only every 255th sample exists.
  const std::string far("\0\x26\xe8\xf0", 4);
  std::string sparse = bomb;
  for (const size_t at : {8u, 12u, 24u, 28u}) sparse = Patched(sparse, at, far);
  sparse = Patched(sparse, 43, "\xff\xff");
  EXPECT_THAT(ErrorOf(sparse), HasSubstr("JPEG 2000 needs about"));
  // Tiles of 50 × 50.
  const std::string small("\0\0\0\x32", 4);
  bomb = Patched(Patched(usual, 24, small), 28, small);
  EXPECT_THAT(ErrorOf(bomb, {.max_scratch_bytes = 500'000'000}),
              HasSubstr("JPEG 2000 needs about"));
  // Tiles of 10 × 10.
  const std::string tiny("\0\0\0\x0a", 4);
  bomb = Patched(Patched(usual, 24, tiny), 28, tiny);
  EXPECT_THAT(ErrorOf(bomb), HasSubstr("1000000 tiles"));
}

TEST(Codecs, TellsWhatIsNotSupported) {
  const Picture rgb = MakePicture(19, 17, 3);
  std::string animation = MakeWebp(rgb, {.orientation = 1});
  animation[20] |= 2;
  EXPECT_THAT(ErrorOf(animation), HasSubstr("WebP is an animation"));
  EXPECT_THAT(ErrorOf(MakeTiff(rgb, {.compression = 34925})),
              HasSubstr("TIFF with compression 34925 is not supported"));
  EXPECT_THAT(ErrorOf(MakeTiff(rgb, {.photometric = 6})),
              HasSubstr("photometric 6"));
  EXPECT_THAT(ErrorOf("GIF89a.........."),
              HasSubstr("looks like a GIF image; want JPEG, PNG"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("empty"));
  EXPECT_EQ(FindCodec(AsSpan("\xff\xd8\xff\xe0")), nullptr);
}

class CodecsOf : public ::testing::TestWithParam<TestData> {};
INSTANTIATE_TEST_SUITE_P(Data, CodecsOf, AllTestData(), TestDataName);

TEST_P(CodecsOf, FilesWhoseNamesLie) {
  const auto files = TestDataFiles(GetParam(), "image-variants", 100);
  if (files.empty()) GTEST_SKIP() << NoTestData(GetParam(), "image-variants");
  int decoded = 0;
  for (const std::string& file : files) {
    if (IsJpeg(AsSpan(file))) continue;
    const auto image = Decode(file);
    EXPECT_TRUE(image.ok()) << Message(image.status());
    ++decoded;
  }
  EXPECT_GE(decoded, 3);
}

}  // namespace
}  // namespace leat::worker
