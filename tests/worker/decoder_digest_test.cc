// SPDX-License-Identifier: Apache-2.0
#include "worker/image/decoder_digest.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/image_support.h"

namespace leat::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DecoderDigest, EveryKnownImageDecodes) {
  const std::vector<std::string> images = KnownImages();
  ASSERT_GE(images.size(), 14u);
  Scratch scratch{ImageLimits()};
  for (size_t i = 0; i < images.size(); ++i) {
    SCOPED_TRACE(i);
    Runner runner(
        ChainOf({{"resize", {}, {{"size", std::vector<int64_t>{8, 8}}}}}), 1);
    EXPECT_EQ(runner.Run(images[i], scratch), absl::OkStatus());
  }
}

TEST(DecoderDigest, IsTheSameAgainAndAnotherWithAnyOtherImage) {
  const std::vector<std::string> images = KnownImages();
  const absl::StatusOr<Digest> digest = DecoderDigest(images);
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(*DecoderDigest(images), *digest);
  std::set<Digest> seen = {*digest};
  // What another decoder makes of an image is what this one makes of another.
  for (size_t i = 0; i < images.size(); ++i) {
    std::vector<std::string> others = images;
    others[i] = images[i == 0 ? 1 : 0];
    EXPECT_TRUE(seen.insert(*DecoderDigest(others)).second) << i;
    // A library that cannot decode it.
    others[i] = "no image";
    EXPECT_TRUE(seen.insert(*DecoderDigest(others)).second) << i;
  }
}

TEST(DecoderDigest, NamesEveryLibrary) {
  EXPECT_THAT(DecoderLibraries(),
              AllOf(HasSubstr("libjpeg"), HasSubstr("libpng 1."),
                    HasSubstr("libtiff 4."), HasSubstr("libwebp 1."),
                    HasSubstr("OpenJPEG 2.")));
}

}  // namespace
}  // namespace leat::worker
