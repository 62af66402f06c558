// SPDX-License-Identifier: Apache-2.0
//
// Files that are cut short, found out without decoding: never a sound one, and
// all that are shorter than any data of their size.
#include <algorithm>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/damaged_jpegs.h"
#include "tests/worker/image_support.h"
#include "worker/image/jpeg_check.h"

namespace leat::worker {
namespace {

using testing::JpegColor;
using testing::JpegSpec;

bool EndsEarly(const std::string& jpeg) {
  JpegDecoder decoder({});
  return decoder.Open(AsSpan(jpeg)).ok() && decoder.EndsEarly();
}

// Whether libjpeg decodes all of it without a complaint.
bool IsSound(const std::string& jpeg) {
  JpegDecoder decoder({});
  return decoder.Open(AsSpan(jpeg)).ok() &&
         CheckJpegRows(&decoder, decoder.header().size.height, false).ok();
}

// Of one colour: every block but the first is coded as short as can be.
std::string Plain(const JpegSpec& spec) {
  return testing::MakeJpeg(
      spec, std::vector<uint8_t>(
                static_cast<size_t>(spec.width * spec.height) * 3, 128));
}

std::string CutAt(const std::string& jpeg, size_t bytes) {
  return jpeg.substr(0, bytes) + "\xff\xd9";
}

size_t DataOf(const std::string& jpeg) {
  const size_t header = jpeg.find("\xff\xda");
  return header + 2 + static_cast<uint8_t>(jpeg[header + 3]);
}

TEST(JpegScan, SoundFilesDoNotEndEarly) {
  for (const std::string& jpeg : JpegsOfManyKinds()) {
    ASSERT_TRUE(IsSound(jpeg));
    EXPECT_FALSE(EndsEarly(jpeg));
  }
  for (const auto& [h, v] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}})
    for (const int interval : {0, 1, 3, 8})
      for (const int side : {1, 8, 17, 64, 301}) {
        const JpegSpec spec{.width = side,
                            .height = 40,
                            .h = h,
                            .v = v,
                            .quality = 1 + side % 100,
                            .restart_interval = interval};
        EXPECT_FALSE(EndsEarly(testing::MakeJpeg(spec))) << side;
        EXPECT_FALSE(EndsEarly(Plain(spec))) << side;
      }
}

// The bound is reached: of a plain image all cuts are found but those in the
// last bytes, where padding and the first block's value are.
TEST(JpegScan, APlainImageThatIsCutIsFound) {
  for (const JpegColor color : {JpegColor::kYcc, JpegColor::kGray}) {
    const bool gray = color == JpegColor::kGray;
    const std::string jpeg = Plain({.width = 200,
                                    .height = 100,
                                    .color = color,
                                    .h = gray ? 1 : 2,
                                    .v = gray ? 1 : 2});
    for (size_t at = DataOf(jpeg); at + 5 < jpeg.size(); ++at)
      EXPECT_TRUE(EndsEarly(CutAt(jpeg, at))) << at << " of " << jpeg.size();
  }
}

// Whatever the picture: the last interval alone may be cut unnoticed.
TEST(JpegScan, AFileThatLacksRestartMarkersIsFound) {
  const std::string jpeg =
      testing::MakeJpeg({.width = 320, .height = 240, .restart_interval = 20});
  const size_t last = jpeg.rfind("\xff\xd0") > jpeg.rfind("\xff\xd1")
                          ? jpeg.rfind("\xff\xd0")
                          : jpeg.rfind("\xff\xd1");
  ASSERT_NE(last, std::string::npos);
  for (size_t at = DataOf(jpeg); at < last; at += 7)
    EXPECT_TRUE(EndsEarly(CutAt(jpeg, at))) << at << " of " << jpeg.size();
  const size_t first = jpeg.find("\xff\xd0", DataOf(jpeg));
  std::string renumbered = jpeg;
  renumbered[first + 1] ^= 2;
  EXPECT_TRUE(EndsEarly(renumbered));
  EXPECT_TRUE(EndsEarly(std::string(jpeg).erase(first, 2)));
  // More bytes before a marker are none of libjpeg's business.
  const std::string longer = std::string(jpeg).insert(first, "more");
  EXPECT_EQ(EndsEarly(longer), !IsSound(longer));
}

TEST(JpegScan, WhatEndsEarlyIsDamaged) {
  int found = 0, cut = 0;
  uint32_t seed = 0;
  for (const std::string& jpeg : JpegsOfManyKinds())
    for (const std::string& copy : JpegDamager(jpeg, ++seed).Copies()) {
      const bool early = EndsEarly(copy);
      found += early ? 1 : 0;
      cut += IsSound(copy) ? 0 : 1;
      if (early) {
        EXPECT_FALSE(IsSound(copy));
      }
    }
  EXPECT_GT(found, 150);
  EXPECT_LT(found, cut);
}

}  // namespace
}  // namespace leat::worker
