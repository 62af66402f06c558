// SPDX-License-Identifier: Apache-2.0
#include "tests/support/photos/photo.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/image/jpeg/scan/header.h"
#include "worker/image/resample/geometry.h"

namespace leat::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Le;
using ::testing::Lt;
using ::testing::SizeIs;

uint64_t Fnv(std::span<const uint8_t> bytes) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001B3u;
  return hash;
}

int ExifOf(const std::string& jpeg) {
  return worker::ExifOrientation(std::as_bytes(std::span(jpeg)));
}

// Returns the decoded file as a viewer shows it: by the worker's reading of
// EXIF.
DecodedImage Upright(const std::string& jpeg) {
  const DecodedImage stored = PlainDecode(jpeg);
  const worker::Orientation turn = worker::Orientation::Of(ExifOf(jpeg));
  DecodedImage image = stored;
  if (turn.transposed) std::swap(image.width, image.height);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      int u = turn.transposed ? y : x, v = turn.transposed ? x : y;
      if (turn.mirror_x) u = stored.width - 1 - u;
      if (turn.mirror_y) v = stored.height - 1 - v;
      std::copy_n(&stored.pixels[(size_t{3} * v * stored.width) + 3 * u], 3,
                  &image.pixels[(size_t{3} * y * image.width) + 3 * x]);
    }
  return image;
}

double MeanDifference(const std::vector<uint8_t>& a,
                      const std::vector<uint8_t>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}

// They do not depend on the compiler and its flags. If a change of the drawing
// changes them, check the demo's accuracy again.
TEST(PhotoTest, PixelsAreTheSameEverywhere) {
  std::vector<uint64_t> hashes;
  for (const int number : {0, 1, 17, 4711})
    hashes.push_back(Fnv(DrawPhoto({}, number).pixels));
  EXPECT_THAT(hashes, ::testing::ElementsAre(
                          13744951522106821276u, 2136332193405961705u,
                          17978366970097892104u, 7382295277781399006u));
}

TEST(PhotoTest, FilesAreTheSameEachTime) {
  for (const int number : {3, 30})
    EXPECT_EQ(EncodePhoto(DrawPhoto({}, number)),
              EncodePhoto(DrawPhoto({}, number)));
}

TEST(PhotoTest, NumbersAndSeedsGiveOtherPhotos) {
  std::set<uint64_t> hashes;
  for (int number = 0; number < 12; ++number)
    for (const uint32_t seed : {1u, 2u})
      hashes.insert(
          Fnv(DrawPhoto({.max_side = 64, .seed = seed}, number).pixels));
  EXPECT_THAT(hashes, SizeIs(24));
}

TEST(PhotoTest, AFileShowsWhatWasDrawnWhicheverWayItIsStored) {
  std::set<int> orientations;
  for (int number = 0; number < 160; ++number) {
    const Photo photo = DrawPhoto({.max_side = 120}, number);
    if (photo.spec.color == JpegColor::kGray) continue;
    const std::string jpeg = EncodePhoto(photo);
    if (!orientations.insert(ExifOf(jpeg)).second) continue;
    const DecodedImage shown = Upright(jpeg);
    ASSERT_EQ(shown.width, photo.width) << number;
    ASSERT_EQ(shown.height, photo.height) << number;
    // Two photos differ by 50 and more, one turned wrongly by 20.
    EXPECT_THAT(MeanDifference(shown.pixels, photo.pixels), Lt(9)) << number;
  }
  EXPECT_THAT(orientations, ::testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(PhotoTest, SizesAndBytesAreThoseOfPhotos) {
  std::vector<size_t> bytes;
  std::vector<int> longest;
  for (int number = 0; number < 64; ++number) {
    const Photo photo = DrawPhoto({}, number);
    longest.push_back(std::max(photo.width, photo.height));
    bytes.push_back(EncodePhoto(photo).size());
  }
  std::sort(bytes.begin(), bytes.end());
  std::sort(longest.begin(), longest.end());
  EXPECT_THAT(longest, Each(AllOf(Ge(256), Le(640))));
  EXPECT_EQ(longest[32], 500);
  EXPECT_THAT(bytes[32], AllOf(Ge(90'000u), Le(130'000u)));
  EXPECT_THAT(bytes[6], Ge(35'000u));
  EXPECT_THAT(bytes[57], Le(220'000u));
}

TEST(PhotoTest, TheLongestSideBoundsEachPhoto) {
  for (int number = 0; number < 40; ++number) {
    const Photo photo = DrawPhoto({.max_side = 16}, number);
    EXPECT_EQ(std::max(photo.width, photo.height), 16);
    EXPECT_EQ(std::min(photo.width, photo.height), 16);
  }
  int longest = 0;
  for (int number = 0; number < 100; ++number) {
    const Photo photo = DrawPhoto({.max_side = 96}, number);
    longest = std::max({longest, photo.width, photo.height});
  }
  EXPECT_EQ(longest, 96);
}

TEST(PhotoTest, EveryCodingIsDealtOutOfANumberOfPhotos) {
  std::map<std::pair<int, int>, int> samplings;
  int progressive = 0, gray = 0, restarts = 0;
  constexpr int kCount = 96;
  for (int number = 0; number < kCount; ++number) {
    const JpegSpec spec = DrawPhoto({.max_side = 16}, number).spec;
    ++samplings[{spec.h, spec.v}];
    progressive += spec.progressive ? 1 : 0;
    gray += spec.color == JpegColor::kGray ? 1 : 0;
    restarts += spec.restart_interval > 0 ? 1 : 0;
  }
  EXPECT_EQ(progressive, 4);
  EXPECT_EQ(gray, 2);
  EXPECT_EQ(restarts, 3);
  EXPECT_EQ((samplings[{4, 1}] + samplings[{4, 2}]), 2);
  EXPECT_EQ((samplings[{2, 1}]), 2);
  EXPECT_EQ((samplings[{1, 2}]), 2);
  EXPECT_GT((samplings[{1, 1}]), kCount / 2);
  EXPECT_GT((samplings[{2, 2}]), kCount / 5);
}

// A network must not learn from side channels: no class's mean size, brightness
// or number of bytes is far from the others'.
TEST(PhotoTest, NeitherSizeNorBrightnessNorBytesGiveAwayTheClass) {
  constexpr int kClasses = 10, kEach = 40;
  std::array<double, kClasses> pixels = {}, level = {}, quality = {};
  for (int number = 0; number < kClasses * kEach; ++number) {
    const Photo photo = DrawPhoto({.max_side = 48}, number);
    double sum = 0;
    for (const uint8_t value : photo.pixels) sum += value;
    pixels[number % kClasses] += photo.width * photo.height / kEach;
    level[number % kClasses] +=
        sum / static_cast<double>(photo.pixels.size()) / kEach;
    quality[number % kClasses] +=
        static_cast<double>(photo.spec.quality) / kEach;
  }
  for (const auto& means : {pixels, level, quality}) {
    const auto [low, high] = std::minmax_element(means.begin(), means.end());
    EXPECT_LT(*high, *low * 1.35) << *low << " " << *high;
  }
}

TEST(PhotoTest, EachClassHasANameOfItsOwn) {
  for (const int classes : {1, 10, 11, 100, 101, kMaxClasses}) {
    std::set<std::string> names;
    for (int i = 0; i < classes; ++i)
      names.insert(ClassName({.classes = classes}, i));
    EXPECT_THAT(names, SizeIs(classes));
  }
  EXPECT_EQ(ClassName({}, 0), "ball");
  EXPECT_EQ(ClassName({.classes = 20}, 12), "car-orange");
  EXPECT_EQ(ClassName({.classes = 500}, 312), "car-orange-bricks");
}

}  // namespace
}  // namespace leat::testing
