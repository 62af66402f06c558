// SPDX-License-Identifier: Apache-2.0
//
// Kernels that find their places in a file's codes by themselves, beside
// libjpeg: what they accept has the same pixels, and of files that the host
// accepts they refuse hardly any.
#include <random>

#include "gtest/gtest.h"
#include "tests/support/sanitized.h"
#include "tests/support/test_data.h"
#include "tests/worker/gpu/kernels/jpeg_support.h"
#include "tests/worker/image/jpeg/decode/damaged_jpegs.h"

namespace leat::worker {
namespace {

using testing::MakeJpeg;

constexpr int kSyncSamplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};

// Compares windows of files with libjpeg and with the host's reading.
struct Synced {
  int taken = 0, refused = 0, only_host = 0;

  void Ask(JpegDecoder& decoder, const std::string& file, const Rect& window,
           bool gray) {
    const ByCodes by = DecodeByCodes(decoder, file, window, gray, nullptr);
    if (!by.found) return;
    ++(by.pixels ? taken : refused);
    const WindowOfJpeg want = DecodeJpeg(decoder, BytesOf(file), window, gray);
    if (by.pixels) {
      ASSERT_TRUE(want.status.ok() && want.damage.ok()) << want.damage;
      ASSERT_EQ(*by.pixels == want.pixels, true);
    } else {
      only_host += ByKernels(decoder, BytesOf(file), window, gray).has_value();
    }
  }
};

TEST(JpegSync, HasLibjpegsPixelsInEverySampling) {
  JpegDecoder decoder{ImageLimits{}};
  std::mt19937 random(3);
  Synced synced;
  for (const auto& [h, v] : kSyncSamplings)
    for (const int quality : {5, 60, 100}) {
      // The file has between one and some hundred segments.
      const std::string file = MakeJpeg(
          {.width = 500, .height = 130, .h = h, .v = v, .quality = quality});
      synced.Ask(decoder, file, {0, 0, 500, 130}, false);
      for (int i = 0; i < 10; ++i)
        synced.Ask(decoder, file, RandomPart(random, 500, 130), i % 3 == 0);
    }
  EXPECT_EQ(synced.refused, 0);
  EXPECT_EQ(synced.taken, 132);
}

TEST(JpegSync, HasLibjpegsPixelsOfGrayFilesAndOfOnePixel) {
  JpegDecoder decoder{ImageLimits{}};
  Synced synced;
  synced.Ask(decoder, MakeJpeg({.width = 1, .height = 1}), {0, 0, 1, 1}, false);
  synced.Ask(decoder,
             MakeJpeg({.width = 350,
                       .height = 220,
                       .color = testing::JpegColor::kGray,
                       .h = 1,
                       .v = 1}),
             {0, 0, 350, 220}, false);
  EXPECT_EQ(synced.taken, 2);
}

// Damage below the rows that a window needs does no harm, and damage in them is
// noticed, wherever a segment begins.
TEST(JpegSync, TakesWhatLibjpegFindsSound) {
  JpegDecoder decoder{ImageLimits{}};
  std::mt19937 random(5);
  Synced synced;
  uint32_t seed = 0;
  for (const std::string& file : JpegsOfManyKinds()) {
    ASSERT_TRUE(decoder.Open(BytesOf(file)).ok());
    const StoredSize size = decoder.header().size;
    for (const std::string& copy :
         JpegDamager(file, ++seed).Copies(testing::kSanitized ? 17 : 3))
      for (int i = 0; i < 3; ++i) {
        StoredSize of = size;  // a changed header may make the image smaller
        if (decoder.Open(BytesOf(copy)).ok()) of = decoder.header().size;
        if (of.width > 1000 || of.height > 1000) continue;
        synced.Ask(decoder, copy, RandomPart(random, of.width, of.height),
                   i == 0);
      }
  }
  EXPECT_GT(synced.taken, testing::kSanitized ? 30 : 200);
  EXPECT_GT(synced.refused, testing::kSanitized ? 30 : 200);
  EXPECT_EQ(synced.only_host, 0);
}

class JpegSyncOf : public ::testing::TestWithParam<TestData> {};
INSTANTIATE_TEST_SUITE_P(Data, JpegSyncOf, AllTestData(), TestDataName);

TEST_P(JpegSyncOf, PhotosSynchronise) {
  const auto photos = TestDataFiles(GetParam(), "imagenet-sample",
                                    testing::kSanitized ? 8 : 60);
  if (photos.empty()) GTEST_SKIP() << NoTestData(GetParam(), "imagenet-sample");
  JpegDecoder decoder{ImageLimits{}};
  std::mt19937 random(6);
  Synced synced;
  for (const std::string& photo : photos) {
    ASSERT_TRUE(decoder.Open(BytesOf(photo)).ok());
    const StoredSize size = decoder.header().size;
    synced.Ask(decoder, photo, RandomPart(random, size.width, size.height),
               false);
  }
  EXPECT_EQ(synced.only_host, 0);
  EXPECT_GE(synced.taken * 10, static_cast<int>(photos.size()) * 8);
}

}  // namespace
}  // namespace leat::worker
