// SPDX-License-Identifier: Apache-2.0
#include "core/plan/group_shares.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using Groups = std::vector<Group>;
using Shares = std::vector<GroupShare>;

const Groups kAnimals = {{"cat", 30}, {"dog", 10}, {"none", 0}, {"bird", 5}};

Groups OfSizes(const std::vector<uint64_t>& sizes) {
  Groups groups;
  for (const uint64_t size : sizes)
    groups.push_back({"g" + std::to_string(groups.size()), size});
  return groups;
}

std::vector<double> SharesOf(const GroupShares& groups) {
  std::vector<double> shares;
  for (const uint64_t weight : groups.tree().weights())
    shares.push_back(static_cast<double>(weight) /
                     static_cast<double>(groups.tree().sum()));
  return shares;
}

void ExpectShares(const Shares& shares, const std::vector<double>& want) {
  const auto groups = GroupShares::Create(kAnimals, shares);
  ASSERT_TRUE(groups.ok()) << groups.status();
  const std::vector<double> found = SharesOf(*groups);
  ASSERT_EQ(found.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(found[i], want[i], 1e-9) << i;
}

std::string ErrorOf(const absl::StatusOr<GroupShares>& groups) {
  EXPECT_EQ(groups.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(groups.status()));
}

// The example in group_shares.h.
TEST(GroupShares, WalksGroupsInPassesOfTheirOwn) {
  const auto groups = GroupShares::Balanced(OfSizes({1, 3}));
  ASSERT_TRUE(groups.ok());
  std::string samples;
  for (uint64_t k = 0; k < 8; ++k) {
    const GroupShares::Place place = groups->Locate(k);
    EXPECT_EQ(place.run.range, groups->RunOf(place.run.number).range);
    samples += static_cast<char>('a' + place.run.range.begin + place.position);
  }
  EXPECT_EQ(samples, "bacadaba");
  EXPECT_EQ(groups->Locate(7).pass, 3u);
  EXPECT_EQ(groups->Locate(6).pass, 1u);
  EXPECT_EQ(groups->num_samples(), 4u);
}

TEST(GroupShares, OfAGroupNoSampleComesTwiceMoreThanAnother) {
  const std::vector<uint64_t> sizes = {500, 40, 7, 0, 1300, 1};
  const auto groups = GroupShares::Balanced(OfSizes(sizes));
  ASSERT_TRUE(groups.ok());
  std::vector<std::vector<uint64_t>> times;
  std::vector<uint64_t> rows(sizes.size());
  for (const uint64_t size : sizes) times.emplace_back(size);
  const uint64_t epochs = 3 * groups->num_samples();
  for (uint64_t k = 0; k < epochs; ++k) {
    const GroupShares::Place place = groups->Locate(k);
    const uint32_t group = place.run.number;
    ASSERT_LT(place.position, sizes[group]);
    // All positions have come `pass` times, and those before it once more.
    ASSERT_EQ(times[group][place.position]++, place.pass);
    ASSERT_EQ(rows[group]++, place.pass * sizes[group] + place.position);
    const double share = static_cast<double>(k + 1) / 5;
    ASSERT_NEAR(static_cast<double>(rows[group]), share, 1.68);
  }
  for (const size_t group : {0, 1, 2, 4, 5})
    EXPECT_NEAR(static_cast<double>(rows[group]), 1108.8, 1);
  EXPECT_EQ(rows[3], 0u);
}

TEST(GroupShares, BalanceLeavesOutGroupsWithoutSamples) {
  EXPECT_EQ(SharesOf(GroupShares::Balanced(kAnimals).value())[2], 0);
}

TEST(GroupShares, TakesSharesByNameAndEvenlyForTheOthers) {
  ExpectShares({{"dog", 1}, {"cat", 2}, {"bird", 1}}, {0.5, 0.25, 0, 0.25});
  ExpectShares({{"bird", 0.5}, {"*", 0.5}}, {0.25, 0.25, 0, 0.5});
  ExpectShares({{"*", 2}, {"cat", 0}, {"none", 0}}, {0, 0.5, 0, 0.5});
}

TEST(GroupShares, TheLargestNumberOfGroupsIsBalanced) {
  const auto groups =
      GroupShares::Balanced(OfSizes(std::vector<uint64_t>(kMaxGroups, 2)));
  ASSERT_TRUE(groups.ok());
  std::vector<bool> seen(kMaxGroups);
  for (uint64_t k = 0; k < kMaxGroups; ++k) {
    const uint32_t group = groups->Locate(k).run.number;
    ASSERT_FALSE(seen[group]);
    seen[group] = true;
  }
}

// Weights of 1, 2 and 0.25, each of some samples.
TEST(GroupShares, OfWeightsEachSampleComesAsItsWeightSays) {
  const Groups groups = {{"0.25", 40, 1}, {"1", 30, 4}, {"2", 25, 8}};
  const auto weighed = GroupShares::Weighed(groups);
  ASSERT_TRUE(weighed.ok()) << weighed.status();
  EXPECT_FALSE(weighed->are_classes());
  EXPECT_TRUE(GroupShares::Balanced(groups)->are_classes());
  std::vector<uint64_t> times(95);
  const double sum = 40 * 0.25 + 30 + 50;
  for (uint64_t k = 0; k < 5000; ++k) {
    const GroupShares::Place place = weighed->Locate(k);
    ++times[place.run.range.begin + place.position];
  }
  for (size_t i = 0; i < times.size(); ++i) {
    const double weight = i < 40 ? 0.25 : i < 70 ? 1 : 2;
    EXPECT_NEAR(static_cast<double>(times[i]), 5000 * weight / sum, 1.0) << i;
  }
}

TEST(GroupShares, RefusesWeightsThatCannotBeAdded) {
  EXPECT_EQ(ErrorOf(GroupShares::Weighed(Groups{{"1", 3, 5}, {"2", 2, 0}})),
            "group \"2\" of 2 samples has no weight");
  const uint64_t most = ShareTree::kMaxSum;
  EXPECT_TRUE(
      GroupShares::Weighed(Groups{{"a", 1, most - 1}, {"b", 1, 1}}).ok());
  const std::string text =
      "weights of samples have a sum over 72057594037927936: want a smaller "
      "one";
  EXPECT_EQ(ErrorOf(GroupShares::Weighed(Groups{{"a", 1, most}, {"b", 1, 1}})),
            text);
  EXPECT_EQ(
      ErrorOf(GroupShares::Weighed(Groups{{"a", 1ull << 40, 1ull << 40}})),
      text);
}

TEST(GroupShares, RefusesGroupsThatCannotBeWalked) {
  EXPECT_EQ(ErrorOf(GroupShares::Balanced({})), "0 groups: want 1 to 65536");
  EXPECT_EQ(ErrorOf(GroupShares::Balanced(Groups(kMaxGroups + 1))),
            "65537 groups: want 1 to 65536");
  EXPECT_EQ(ErrorOf(GroupShares::Balanced(OfSizes({0, 0}))),
            "none of 2 groups has samples");
}

TEST(GroupShares, RefusesSharesThatDoNotFitTheGroups) {
  const auto error = [](const Shares& shares) {
    return ErrorOf(GroupShares::Create(kAnimals, shares));
  };
  EXPECT_EQ(error({{"cta", 1}, {"*", 1}}),
            "weights has \"cta\", which is no group; did you mean \"cat\"?");
  EXPECT_EQ(error({{"elephant", 1}, {"*", 1}}),
            "weights has \"elephant\", which is none of 4 groups; \"cat\" is "
            "one");
  EXPECT_EQ(error({{"cat", 1}, {"*", 1}, {"cat", 1}}),
            "weights has \"cat\" twice");
  EXPECT_EQ(error({{"cat", 1}, {"bird", 1}}),
            "weights has no \"dog\"; want every group named, or \"*\" for the "
            "others");
  EXPECT_EQ(error({{"cat", 1}, {"dog", 1}, {"bird", 1}, {"*", 0.5}}),
            "weights[\"*\"] = 0.5, but every group with samples is named");
  EXPECT_EQ(error({{"none", 0.5}, {"*", 1}}),
            "weights[\"none\"] = 0.5, but this group has no samples; want 0");
  EXPECT_EQ(error({{"cat", 1}, {"*", -1}}),
            "weights[\"*\"] = -1; want a number of 0 or more");
  EXPECT_EQ(error({{"cat", 0}, {"*", 0}}),
            "weights: all are 0; want at least one over 0");
  EXPECT_EQ(error({{"cat", 1}, {"*", 1e-12}}),
            "weights[\"dog\"] = 5e-13; want 0, or at least 2.33e-10, which is "
            "2^-32 of the sum");
}

}  // namespace
}  // namespace leat
