// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/pointwise.h"

#include <cmath>

#include "gtest/gtest.h"

namespace leat {
namespace {

TEST(Pointwise, EveryNaNOfNormalizeIsTheSame) {
  const float infinity = INFINITY;
  EXPECT_EQ(BitsOf(Normalized(infinity, 0, 0, 1)), 0x7fc00000u);
  EXPECT_EQ(BitsOf(Normalized(-infinity, 0, 0, 1)), 0x7fc00000u);
  EXPECT_EQ(BitsOf(Normalized(FloatOf(0xffc12345u), 0, 1, 1)), 0x7fc00000u);
  EXPECT_EQ(HalfOf(Normalized(0, infinity, 0, 0)), 0x7e00);
}

TEST(Pointwise, NormalizeRoundsEachStep) {
  // With contraction, the product's rounding error would remain in the sum.
  const float x = 1.0f + 0x1.0p-12f;
  EXPECT_EQ(Normalized(x, 0, x, -(1.0f + 0x1.0p-11f)), 0.0f);
}

TEST(Pointwise, CastsSaturate) {
  EXPECT_EQ(Converted<uint8_t>(int32_t{-1}), 0);
  EXPECT_EQ(Converted<uint8_t>(int64_t{256}), 255);
  EXPECT_EQ(Converted<int32_t>(INT64_MIN), INT32_MIN);
  EXPECT_EQ(Converted<int64_t>(1e30f), INT64_MAX);
  EXPECT_EQ(Converted<int32_t>(2147483648.0f), INT32_MAX);
  EXPECT_EQ(Converted<uint8_t>(254.5f), 254);
  EXPECT_EQ(Converted<uint8_t>(NAN), 0);
  EXPECT_EQ(Converted<Half>(int32_t{65'519}).bits, 0x7bff);
  EXPECT_EQ(Converted<Half>(int32_t{65'520}).bits, 0x7c00);
  EXPECT_TRUE(Converted<bool>(Half{0x0001}));
  EXPECT_FALSE(Converted<bool>(Half{0x8000}));
  EXPECT_TRUE(Converted<bool>(-0.5f));
  EXPECT_EQ(Converted<float>(Half{0xfc00}), -INFINITY);
}

}  // namespace
}  // namespace leat
