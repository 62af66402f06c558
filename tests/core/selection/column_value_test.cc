// SPDX-License-Identifier: Apache-2.0
#include "core/selection/column_value.h"

#include <cmath>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace leat {
namespace {

TEST(ColumnValue, ComparesNumbersExactly) {
  const int64_t odd = (int64_t{1} << 53) + 1;
  EXPECT_EQ(Compare(odd, 0x1p53), Ordering::kGreater);
  EXPECT_EQ(Compare(0x1p53, odd), Ordering::kLess);
  EXPECT_EQ(Compare(odd - 1, 0x1p53), Ordering::kEqual);
  EXPECT_EQ(Compare(std::numeric_limits<int64_t>::max(), 0x1p63),
            Ordering::kLess);
  EXPECT_EQ(Compare(std::numeric_limits<int64_t>::min(), -0x1p63),
            Ordering::kEqual);
  EXPECT_EQ(Compare(int64_t{-3}, -3.5), Ordering::kGreater);
  EXPECT_EQ(Compare(-INFINITY, int64_t{0}), Ordering::kLess);
}

TEST(ColumnValue, NothingAndOtherKindsCompareToNothing) {
  EXPECT_EQ(Compare({}, int64_t{0}), Ordering::kNone);
  EXPECT_EQ(Compare({}, {}), Ordering::kNone);
  EXPECT_EQ(Compare(std::nan(""), std::nan("")), Ordering::kNone);
  EXPECT_EQ(Compare("5", int64_t{5}), Ordering::kNone);
  EXPECT_EQ(Compare("a", "b"), Ordering::kLess);
}

TEST(ColumnValue, LikeTakesNoLongerThanItsTexts) {
  const std::string text(100'000, 'a');
  std::string pattern;
  for (int i = 0; i < 500; ++i) pattern += "*a";
  EXPECT_TRUE(IsLike(text, pattern));
  EXPECT_FALSE(IsLike(text, pattern + "b"));
}

}  // namespace
}  // namespace leat
