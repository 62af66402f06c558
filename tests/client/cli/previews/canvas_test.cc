// SPDX-License-Identifier: Apache-2.0
#include "client/cli/previews/canvas.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace leat::cli {
namespace {

TEST(Canvas, OnlyDotsInsideAreDrawn) {
  Canvas canvas(4, 3);
  canvas.Frame(-1, -1, 4, 3, kRed);
  canvas.Write("X", 100, 100, 1, kInk);
  const RgbImage picture = canvas.Take();
  EXPECT_EQ(picture.rgb.size(), 36u);
  EXPECT_EQ(std::ranges::count(picture.rgb, kRed.r), 4)
      << "three dots of the right side, and one more below";
}

TEST(Canvas, TextIsCutToPixels) {
  EXPECT_EQ(CutToPixels("abcdef", TextWidth(6, 2), 2), "abcdef");
  EXPECT_EQ(CutToPixels("abcdef", TextWidth(5, 2), 2), "abc..");
  EXPECT_EQ(CutToPixels("\u00e9\x1b", 1000, 1), "?\\x1b");
}

}  // namespace
}  // namespace leat::cli
