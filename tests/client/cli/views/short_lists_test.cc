// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/short_lists.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::StartsWith;

TEST(ShortLists, AListOfAMessageIsCutAsWell) {
  EXPECT_EQ(ShortList(Json::array({1, "b"})), "[1, b]");
  EXPECT_EQ(ShortList(Json::array()), "[]");
  Json many = Json::array();
  for (int i = 0; i < 40; ++i) many.push_back(i);
  EXPECT_THAT(
      ShortList(many),
      AllOf(StartsWith("[0, 1, 2, and 37 more (digest "), EndsWith(")]")));
}

}  // namespace
}  // namespace leat::cli
