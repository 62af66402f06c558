// SPDX-License-Identifier: Apache-2.0
#include "core/edit_distance.h"

#include <vector>

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

TEST(NearestWord, IsTheFirstOfSeveral) {
  const std::vector<std::string_view> words = {"crop", "pads", "pack"};
  EXPECT_EQ(*NearestWord(words, "pac"), "pack");
  EXPECT_EQ(*NearestWord(words, "pa"), "pads");
  const std::vector<std::string_view> none;
  EXPECT_EQ(NearestWord(none, "a"), none.end());
}

}  // namespace
}  // namespace leat
