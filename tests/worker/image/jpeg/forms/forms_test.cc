// SPDX-License-Identifier: Apache-2.0
//
// Forms of sound files: the bits, and which form belongs to which file.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/test_data.h"
#include "tests/worker/image/jpeg/forms/support.h"
#include "worker/image/jpeg/forms/library_check.h"

namespace leat::worker {
namespace {

using testing::DecodedImage;
using ::testing::HasSubstr;
using testing::JpegColor;
using testing::JpegSpec;
using testing::MakeJpeg;

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

// Counts windows that forms decode to other pixels than libjpeg's plain
// decoding of all of the file, or do not decode at all.
int CountDifferent(const std::string& jpeg, int windows, uint32_t seed,
                   std::initializer_list<JpegFormKind> kinds = {
                       JpegFormKind::kSeekIndex, JpegFormKind::kCoefficients}) {
  std::mt19937 random(seed);
  JpegDecoder decoder({});
  const DecodedImage colours = testing::PlainDecode(jpeg);
  const DecodedImage grays = testing::PlainDecode(jpeg, true);
  EXPECT_FALSE(colours.pixels.empty());
  const Rect first = RandomPart(random, colours.width, colours.height);
  const MadeForms made = MakeFormsOf(decoder, BytesOf(jpeg), first, seed % 3);
  int different =
      made.window.pixels !=
      (seed % 3 != 0 ? Crop(grays, first, 1) : Crop(colours, first, 3));
  for (const JpegFormKind kind : kinds) {
    const auto& form = made.of(kind);
    EXPECT_TRUE(form.ok()) << FormName(kind) << ": " << form.status();
    if (!form.ok()) return windows;
    for (int i = 0; i < windows; ++i) {
      const bool gray = i % 3 == 2;
      Rect window = RandomPart(random, colours.width, colours.height);
      if (i == 0) window = {0, 0, colours.width, colours.height};
      const WindowOfJpeg read =
          DecodeJpeg(decoder, BytesOf(jpeg), window, gray, form->get());
      EXPECT_TRUE(read.damage.ok()) << read.damage;
      EXPECT_TRUE(read.used_form);
      if (!read.used_form ||
          read.pixels != Crop(gray ? grays : colours, window, gray ? 1 : 3))
        ++different;
    }
  }
  return different;
}

TEST(JpegForms, WorkWithThisLibrary) {
  EXPECT_TRUE(LibraryTakesMcus());
  EXPECT_TRUE(LibraryGivesCoefficients());
}

TEST(JpegForms, GiveTheBitsOfPlainDecoding) {
  const int samplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1},
                              {4, 2}, {1, 4}, {2, 4}, {3, 1}, {1, 3}};
  uint32_t seed = 1;
  for (const auto& [h, v] : samplings)
    for (const auto& [width, height] :
         {std::pair{331, 97}, std::pair{64, 64}, std::pair{17, 200},
          std::pair{7, 5}, std::pair{640, 41}})
      for (const int quality : {60, 98}) {
        const std::string jpeg = MakeJpeg({.width = width,
                                           .height = height,
                                           .h = h,
                                           .v = v,
                                           .quality = quality,
                                           .seed = ++seed});
        EXPECT_EQ(CountDifferent(jpeg, 9, seed), 0)
            << h << "x" << v << " " << width << "x" << height << " quality "
            << quality;
      }
}

TEST(JpegForms, GiveTheBitsOfOtherColoursToo) {
  uint32_t seed = 100;
  for (const JpegSpec& spec :
       {JpegSpec{.width = 300, .height = 150, .color = JpegColor::kGray},
        JpegSpec{.width = 300,
        .height = 150,
        .color = JpegColor::kGray,
        .h = 1,
        .v = 1},
        JpegSpec{.width = 300,
        .height = 150,
        .color = JpegColor::kRgb,
        .h = 1,
        .v = 1},
        JpegSpec{.width = 300, .height = 150, .quality = 100},
        JpegSpec{.width = 300, .height = 150, .orientation = 6}})
    EXPECT_EQ(CountDifferent(MakeJpeg(spec), 20, ++seed), 0) << seed;
}

TEST(JpegForms, GiveTheBitsOfInks) {
  std::mt19937 random(9);
  JpegDecoder decoder({});
  for (const JpegColor color : {JpegColor::kCmyk, JpegColor::kYcck}) {
    const std::string jpeg =
        MakeJpeg({.width = 290, .height = 70, .color = color});
    const MadeForms made = MakeFormsOf(decoder, BytesOf(jpeg));
    for (const JpegFormKind kind : kMcuFormKinds) {
      ASSERT_TRUE(made.of(kind).ok()) << made.of(kind).status();
      for (int i = 0; i < 20; ++i) {
        const Rect window = RandomPart(random, 290, 70);
        const WindowOfJpeg read = DecodeJpeg(decoder, BytesOf(jpeg), window,
                                             i % 2 == 0, made.of(kind)->get());
        EXPECT_TRUE(read.used_form);
        EXPECT_TRUE(read.SameAs(
            DecodeJpeg(decoder, BytesOf(jpeg), window, i % 2 == 0)));
      }
    }
  }
}

TEST(JpegForms, CoefficientsGiveTheBitsOfProgressiveFiles) {
  const int samplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1},
                              {4, 2}, {1, 4}, {2, 4}, {3, 1}, {1, 3}};
  uint32_t seed = 1;
  for (const auto& [h, v] : samplings)
    for (const auto& [width, height] :
         {std::pair{331, 97}, std::pair{17, 200}, std::pair{7, 5}})
      for (const int quality : {20, 75, 100}) {
        const JpegSpec spec{.width = width,
                            .height = height,
                            .h = h,
                            .v = v,
                            .quality = quality,
                            .progressive = true,
                            .orientation = quality == 75 ? 6 : 0,
                            .scans = quality == 20 ? 30 : 0,
                            .seed = ++seed};
        EXPECT_EQ(CountDifferent(MakeJpeg(spec), 9, seed,
                                 {JpegFormKind::kCoefficients}),
                  0)
            << h << "x" << v << " " << width << "x" << height << " quality "
            << quality;
      }
  for (const JpegColor color : {JpegColor::kGray, JpegColor::kRgb})
    for (const int factor : {1, 2}) {
      if (color == JpegColor::kRgb && factor == 2) continue;
      const JpegSpec spec{.width = 199,
                          .height = 150,
                          .color = color,
                          .h = factor,
                          .v = factor,
                          .progressive = true};
      EXPECT_EQ(CountDifferent(MakeJpeg(spec), 20, ++seed,
                               {JpegFormKind::kCoefficients}),
                0);
    }
}

TEST(JpegForms, CoefficientsOfProgressiveFilesAreOfThemAlone) {
  JpegDecoder decoder({});
  const JpegSpec spec{
      .width = 217, .height = 111, .progressive = true, .orientation = 6};
  const std::string jpeg = MakeJpeg(spec);
  const MadeForms made = MakeFormsOf(decoder, BytesOf(jpeg));
  EXPECT_EQ(made.seek_index.status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(made.seek_index.status())),
              HasSubstr("progressive"));
  ASSERT_TRUE(made.coefficients.ok()) << made.coefficients.status();
  const auto& form = dynamic_cast<const Coefficients&>(**made.coefficients);
  EXPECT_TRUE(form.IsOf(BytesOf(jpeg)));
  const Rect window{30, 40, 150, 60};
  const WindowOfJpeg plain = DecodeJpeg(decoder, BytesOf(jpeg), window, false);
  // Instead of the file.
  const WindowOfJpeg alone =
      DecodeJpeg(decoder, form.file_header(), window, false, &form);
  EXPECT_EQ(decoder.header().orientation, 6);
  EXPECT_TRUE(alone.used_form);
  EXPECT_TRUE(alone.SameAs(plain));
  // With files of another size, another shape and other colours.
  JpegSpec wider = spec, gray = spec;
  wider.width = 218;
  gray.color = JpegColor::kGray;
  for (const JpegSpec& other : {wider, gray}) {
    std::string file = MakeJpeg(other);
    for (const bool as_long : {false, true}) {
      if (as_long) file.resize(std::max(file.size(), jpeg.size()), '\0');
      if (as_long && file.size() != jpeg.size()) continue;
      const WindowOfJpeg read =
          DecodeJpeg(decoder, BytesOf(file), window, false, &form);
      EXPECT_FALSE(read.used_form);
      EXPECT_TRUE(
          read.SameAs(DecodeJpeg(decoder, BytesOf(file), window, false)));
    }
  }
}

TEST(JpegForms, CoefficientsOfProgressiveInks) {
  JpegDecoder decoder({});
  std::mt19937 random(3);
  for (const JpegColor color : {JpegColor::kCmyk, JpegColor::kYcck}) {
    const std::string jpeg = MakeJpeg(
        {.width = 290, .height = 70, .color = color, .progressive = true});
    const MadeForms made = MakeFormsOf(decoder, BytesOf(jpeg));
    ASSERT_TRUE(made.coefficients.ok()) << made.coefficients.status();
    for (int i = 0; i < 20; ++i) {
      const Rect window = RandomPart(random, 290, 70);
      const WindowOfJpeg read = DecodeJpeg(
          decoder, BytesOf(jpeg), window, i % 2 == 0, made.coefficients->get());
      EXPECT_TRUE(read.used_form);
      EXPECT_TRUE(
          read.SameAs(DecodeJpeg(decoder, BytesOf(jpeg), window, i % 2 == 0)));
    }
  }
}

class JpegFormsOf : public ::testing::TestWithParam<TestData> {};
INSTANTIATE_TEST_SUITE_P(Data, JpegFormsOf, AllTestData(), TestDataName);

TEST_P(JpegFormsOf, PhotosGiveTheBitsOfPlainDecoding) {
  const auto photos = TestDataFiles(GetParam(), "imagenet-sample", 24);
  if (photos.empty()) GTEST_SKIP() << NoTestData(GetParam(), "imagenet-sample");
  uint32_t seed = 1000;
  for (const std::string& photo : photos)
    EXPECT_EQ(CountDifferent(photo, 4, ++seed), 0) << seed;
}

TEST(JpegForms, ReadIntoTakesThem) {
  JpegDecoder decoder({});
  const std::string jpeg = MakeJpeg({.width = 300, .height = 200});
  const MadeForms made = MakeFormsOf(decoder, BytesOf(jpeg));
  const Rect window{0, 37, 300, 100};
  for (const JpegFormKind kind : kMcuFormKinds)
    for (const bool gray : {false, true}) {
      const size_t bytes = size_t{300} * 100 * (gray ? 1 : 3);
      std::vector<uint8_t> pixels(bytes), plain(bytes);
      const ptrdiff_t stride = 300 * (gray ? 1 : 3);
      ASSERT_TRUE(decoder.Open(BytesOf(jpeg), made.of(kind)->get()).ok());
      ASSERT_TRUE(
          decoder.ReadInto(window, gray, true, pixels.data(), stride).ok());
      EXPECT_TRUE(decoder.used_form());
      ASSERT_TRUE(decoder.Open(BytesOf(jpeg)).ok());
      ASSERT_TRUE(
          decoder.ReadInto(window, gray, true, plain.data(), stride).ok());
      EXPECT_FALSE(decoder.used_form());
      EXPECT_EQ(pixels, plain);
    }
}

TEST(JpegForms, AreTheSameWhicheverWindowMadeThem) {
  std::mt19937 random(4);
  JpegDecoder decoder({});
  const std::string jpeg = MakeJpeg({.width = 401, .height = 203});
  const MadeForms made = MakeFormsOf(decoder, BytesOf(jpeg));
  for (int i = 0; i < 20; ++i) {
    const MadeForms again = MakeFormsOf(
        decoder, BytesOf(jpeg), RandomPart(random, 401, 203), i % 2 == 0);
    for (const JpegFormKind kind : kMcuFormKinds)
      EXPECT_TRUE(std::ranges::equal((*again.of(kind))->bytes(),
                                     (*made.of(kind))->bytes()));
  }
}

TEST(JpegForms, ComeBackFromTheirBytes) {
  JpegDecoder decoder({});
  const std::string jpeg = MakeJpeg({.width = 401, .height = 203});
  const MadeForms made = MakeFormsOf(decoder, BytesOf(jpeg));
  for (const JpegFormKind kind : kMcuFormKinds) {
    const JpegForm& form = **made.of(kind);
    EXPECT_EQ(form.kind(), kind);
    EXPECT_EQ(form.size_bytes(), form.bytes().size());
    const auto parsed =
        JpegForm::Parse({form.bytes().begin(), form.bytes().end()});
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ((*parsed)->kind(), kind);
    EXPECT_TRUE((*parsed)->IsOf(BytesOf(jpeg)));
    const WindowOfJpeg read = DecodeJpeg(decoder, BytesOf(jpeg),
                                         {9, 9, 300, 99}, false, parsed->get());
    EXPECT_TRUE(read.used_form);
    EXPECT_TRUE(read.SameAs(
        DecodeJpeg(decoder, BytesOf(jpeg), {9, 9, 300, 99}, false)));
  }
}

TEST(JpegForms, OfAnotherFileAreNoneOfThisOne) {
  JpegDecoder decoder({});
  const std::string jpeg = MakeJpeg({.width = 200, .height = 100});
  std::string other = jpeg;
  other[other.size() / 2] ^= 1;
  const std::string larger = MakeJpeg({.width = 200, .height = 100, .seed = 9});
  ASSERT_NE(larger.size(), jpeg.size());
  const MadeForms made = MakeFormsOf(decoder, BytesOf(jpeg));
  for (const JpegFormKind kind : kMcuFormKinds) {
    const JpegForm& form = **made.of(kind);
    EXPECT_TRUE(form.IsOf(BytesOf(jpeg)));
    EXPECT_FALSE(form.IsOf(BytesOf(other)));
    EXPECT_FALSE(form.IsOf(BytesOf(larger)));
    // IsOf was not called, but the decoder notices.
    const WindowOfJpeg read =
        DecodeJpeg(decoder, BytesOf(larger), {}, false, &form);
    EXPECT_FALSE(read.used_form);
    EXPECT_TRUE(read.SameAs(DecodeJpeg(decoder, BytesOf(larger), {}, false)));
  }
}

TEST(JpegForms, CoefficientsStandInTheFilesPlace) {
  JpegDecoder decoder({});
  for (const bool gray : {false, true}) {
    const std::string jpeg =
        MakeJpeg({.width = 217, .height = 111, .orientation = 6});
    const MadeForms made = MakeFormsOf(decoder, BytesOf(jpeg));
    const auto& form = dynamic_cast<const Coefficients&>(**made.coefficients);
    EXPECT_TRUE(form.IsOf(form.file_header()));
    const Rect window{30, 40, 150, 60};
    const WindowOfJpeg read =
        DecodeJpeg(decoder, form.file_header(), window, gray, &form);
    EXPECT_EQ(decoder.header().orientation, 6);
    EXPECT_TRUE(read.used_form);
    EXPECT_TRUE(read.SameAs(DecodeJpeg(decoder, BytesOf(jpeg), window, gray)));
    // Alone it is a file without data.
    EXPECT_EQ(
        DecodeJpeg(decoder, form.file_header(), window, gray).damage.code(),
        absl::StatusCode::kDataLoss);
  }
}

TEST(JpegForms, AreNotMadeOfKindsThatLibjpegDecodesAlone) {
  JpegDecoder decoder({});
  const MadeForms baseline =
      MakeFormsOf(decoder, BytesOf(MakeJpeg({.width = 120, .height = 90})));
  for (const auto& [spec, why] : {
           std::pair{JpegSpec{.width = 120, .height = 90, .arithmetic = true},
                     "arithmetic"},
           std::pair{
               JpegSpec{.width = 120, .height = 90, .restart_interval = 4},
               "restart interval (4)"},
       }) {
    const std::string jpeg = MakeJpeg(spec);
    const MadeForms made = MakeFormsOf(decoder, BytesOf(jpeg));
    const WindowOfJpeg plain = DecodeJpeg(decoder, BytesOf(jpeg), {}, false);
    EXPECT_TRUE(made.window.SameAs(plain)) << why;
    for (const JpegFormKind kind : kMcuFormKinds) {
      const absl::Status status = made.of(kind).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(Message(status)), HasSubstr(why));
      const WindowOfJpeg read = DecodeJpeg(decoder, BytesOf(jpeg), {}, false,
                                           baseline.of(kind)->get());
      EXPECT_FALSE(read.used_form);
      EXPECT_TRUE(read.SameAs(plain)) << why;
    }
  }
}

TEST(JpegForms, AreMadeOnlyWhereAskedForAndWithinTheLimit) {
  JpegDecoder decoder({});
  const std::string jpeg = MakeJpeg({.width = 120, .height = 90});
  const WindowOfJpeg plain = DecodeJpeg(decoder, BytesOf(jpeg), {}, false);
  EXPECT_EQ(decoder.TakeForm(JpegFormKind::kSeekIndex).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(decoder.Open(BytesOf(jpeg)).ok());
  decoder.MakeForms({.coefficients = true}, 1000);
  EXPECT_TRUE(ReadWindow(decoder, WholeOf(decoder), false).SameAs(plain));
  EXPECT_EQ(decoder.TakeForm(JpegFormKind::kSeekIndex).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const absl::Status status =
      decoder.TakeForm(JpegFormKind::kCoefficients).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("limit of 1000"));
}

}  // namespace
}  // namespace leat::worker
