// SPDX-License-Identifier: Apache-2.0
#include "core/plan/selection.h"

#include <limits>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

const Selection kBalanced = {.balanced = true, .shares = {}};
const Selection kShares = {.shares = {{"dog", 0.5}, {"*", 3}}};

std::string ErrorOf(const Selection& selection) {
  const absl::Status status = CheckSelection(selection);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(status));
}

TEST(Selection, HasATextInOneOrder) {
  EXPECT_EQ(CanonicalText(Selection()), "");
  EXPECT_EQ(CanonicalText(kBalanced), "balanced\n");
  EXPECT_EQ(CanonicalText(kShares),
            "share \"*\" 0x1.8p+1\nshare \"dog\" 0x1p-1\n");
  Selection reversed = kShares;
  std::swap(reversed.shares[0], reversed.shares[1]);
  EXPECT_EQ(CanonicalText(reversed), CanonicalText(kShares));
  // A name cannot look like another line.
  EXPECT_EQ(CanonicalText({.shares = {{"a\"\nbalanced", 1}}}),
            "share \"a\\\"\\x0abalanced\" 0x1p+0\n");
}

TEST(Selection, ASampleHasTheNameOfItsGroup) {
  const std::vector<Group> groups = {{"cat", 2}, {"cow", 0}, {"dog", 1}};
  EXPECT_EQ(GroupNameOf(groups, 0), "cat");
  EXPECT_EQ(GroupNameOf(groups, 1), "cat");
  EXPECT_EQ(GroupNameOf(groups, 2), "dog");
  EXPECT_EQ(GroupNameOf(groups, 3), "");
  EXPECT_EQ(GroupNameOf({}, 0), "");
  EXPECT_EQ(GroupNameOf(std::vector<Group>{{"0.5", 3, 512}}, 0), "");
}

TEST(Selection, IsShownShortened) {
  EXPECT_EQ(ShownText(Selection()), "all samples");
  EXPECT_EQ(ShownText(kBalanced), "balanced");
  EXPECT_EQ(ShownText(kShares), "*=3 dog=0.5");
  Selection many;
  for (int i = 0; i < 9; ++i) many.shares.push_back({std::to_string(i), 1});
  EXPECT_EQ(ShownText(many), "0=1 1=1 2=1 3=1 5 more");
  EXPECT_EQ(ShownText({.arrangement = {.where = "a == 1", .by = "label"},
                       .balanced = true}),
            "where a == 1 by label balanced");
  EXPECT_EQ(ShownText({.arrangement = {.weights = {.uri = "s3://b/w.npy"}}}),
            "weights of s3://b/w.npy");
}

TEST(Selection, SaysWhetherItIsSet) {
  EXPECT_FALSE(IsSet(Selection()));
  EXPECT_TRUE(IsSet(kBalanced));
  EXPECT_TRUE(HasGroupShares(kShares));
}

TEST(CheckSelection, RefusesWhatNoDatasetCanMean) {
  EXPECT_TRUE(CheckSelection(Selection()).ok());
  EXPECT_TRUE(CheckSelection(kBalanced).ok());
  EXPECT_TRUE(CheckSelection(kShares).ok());
  Selection both = kShares;
  both.balanced = true;
  EXPECT_EQ(
      ErrorOf(both),
      "weights are \"balanced\", and 2 shares are given: want one of both");
  EXPECT_EQ(ErrorOf({.shares = {{"a", 1}, {"b", 2}, {"a", 3}}}),
            "weights has \"a\" twice");
  EXPECT_EQ(ErrorOf({.shares = {{"a", -1}}}),
            "weights[\"a\"] = -1; want a number of 0 or more");
  EXPECT_EQ(
      ErrorOf({.shares = {{"a", std::numeric_limits<double>::infinity()}}}),
      "weights[\"a\"] = inf; want a number of 0 or more");
  EXPECT_EQ(
      ErrorOf({.shares = {{"a", std::numeric_limits<double>::quiet_NaN()}}}),
      "weights[\"a\"] = nan; want a number of 0 or more");
  EXPECT_EQ(ErrorOf({.arrangement = {.by = "label"}}),
            "by: label: want weights with it, \"balanced\" or shares by value");
  EXPECT_EQ(
      ErrorOf({.arrangement = {.weights = {.list = {1, 2}}}, .balanced = true}),
      "weights are of samples, and of groups: want one of both");
  const Selection weighed = {.arrangement = {.weights = {.list = {1, 2}}}};
  EXPECT_TRUE(CheckSelection(weighed).ok());
  EXPECT_TRUE(HasGroupShares(weighed));
  Selection many;
  many.shares.resize(kMaxGroups + 1);
  EXPECT_EQ(ErrorOf(many), "weights has 65537 groups: want at most 65536");
}

}  // namespace
}  // namespace leat
