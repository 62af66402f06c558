// SPDX-License-Identifier: Apache-2.0
#include "core/edit_distance.h"

#include "gtest/gtest.h"

namespace leat {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("resize", "resize"), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("abc", ""), 3u);
  EXPECT_EQ(EditDistance("resize", "resizes"), 1u);
  EXPECT_EQ(EditDistance("resizes", "resize"), 1u);
  EXPECT_EQ(EditDistance("resize", "resive"), 1u);
  EXPECT_EQ(EditDistance("resize", "rseize"), 1u);
  EXPECT_EQ(EditDistance("ab", "ba"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

}  // namespace
}  // namespace leat
