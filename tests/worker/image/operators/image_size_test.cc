// SPDX-License-Identifier: Apache-2.0
#include "worker/image/operators/image_size.h"

#include <span>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/image_maker.h"
#include "tests/support/jpeg_maker.h"

namespace leat::worker {
namespace {

absl::StatusOr<ImageSize> SizeOf(const std::string& file) {
  return SizeOfImage(std::as_bytes(std::span(file)));
}

TEST(ImageSize, IsThatOfTheImageAsItIsShown) {
  const ImageSize wide{.height = 48, .width = 64};
  const ImageSize high{.height = 64, .width = 48};
  EXPECT_EQ(*SizeOf(leat::testing::MakeJpeg({})), wide);
  leat::testing::JpegSpec turned;
  turned.orientation = 6;
  EXPECT_EQ(*SizeOf(leat::testing::MakeJpeg(turned)), high);
  const auto picture = leat::testing::MakePicture(64, 48, 3);
  EXPECT_EQ(*SizeOf(leat::testing::MakePng(picture)), wide);
  EXPECT_EQ(*SizeOf(leat::testing::MakePng(picture, {.orientation = 8})), high);
  EXPECT_EQ(*SizeOf(leat::testing::MakeWebp(picture)), wide);
}

TEST(ImageSize, OfOtherBytesIsAnError) {
  EXPECT_FALSE(SizeOf("no image").ok());
  EXPECT_FALSE(SizeOf(leat::testing::MakeJpeg({}).substr(0, 20)).ok());
  EXPECT_FALSE(SizeOf("").ok());
}

}  // namespace
}  // namespace leat::worker
