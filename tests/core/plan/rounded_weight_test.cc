// SPDX-License-Identifier: Apache-2.0
#include "core/plan/rounded_weight.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

std::vector<RoundedWeight> RoundedOf(const std::vector<double>& weights) {
  std::vector<RoundedWeight> rounded;
  for (const double weight : weights)
    rounded.push_back(RoundedWeight::Of(weight));
  return rounded;
}

// The examples in rounded_weight.h.
TEST(RoundedWeight, HasTenBits) {
  EXPECT_EQ(RoundedWeight::Of(0.1).value(), 819 * 0x1p-13);
  EXPECT_EQ(RoundedWeight::Of(0.75).value(), 0.75);
  EXPECT_EQ(RoundedWeight::Of(1023.6).value(), 1024);
  EXPECT_EQ(RoundedWeight::Of(3e7).value(), 916 * 0x1p15);
  EXPECT_EQ(RoundedWeight::Of(0).value(), 0);
  EXPECT_TRUE(RoundedWeight::Of(0).is_zero());
}

TEST(RoundedWeight, ErrsByLessThanAThousandth) {
  for (double weight = 1e-30; weight < 1e30; weight *= 1.37)
    EXPECT_NEAR(RoundedWeight::Of(weight).value() / weight, 1, 0.001);
}

TEST(RoundedWeight, HasAKeyThatGrowsWithIt) {
  uint32_t before = RoundedWeight::Of(0).key();
  for (const double weight : {std::numeric_limits<double>::denorm_min(), 1e-300,
                              0.5, 0.999, 1.0, 1.002, 2.0, 1e100}) {
    const RoundedWeight rounded = RoundedWeight::Of(weight);
    EXPECT_GT(rounded.key(), before);
    EXPECT_EQ(RoundedWeight::FromKey(rounded.key()).value(), rounded.value());
    before = rounded.key();
  }
}

TEST(RelativeWeights, AreWholeNumbersInProportion) {
  EXPECT_EQ(*RelativeWeights(RoundedOf({0.25, 0.375, 1, 0x1p18})),
            (std::vector<uint64_t>{512, 768, 2048, 512ull << 20}));
  EXPECT_TRUE(RelativeWeights({})->empty());
}

TEST(RelativeWeights, RefuseWhatSpreadsTooFar) {
  EXPECT_EQ(Message(RelativeWeights(RoundedOf({1e-6, 2})).status()),
            "weights are from 1e-06 to 2; want 0, or at least the largest "
            "/ 1048576");
}

TEST(CheckWeight, WantsANumberOf0OrMore) {
  EXPECT_TRUE(CheckWeight(0, 3).ok());
  EXPECT_TRUE(CheckWeight(1e100, 3).ok());
  EXPECT_EQ(Message(CheckWeight(-0.5, 3)),
            "weights[3] = -0.5; want a number of 0 to 1e+100");
  EXPECT_EQ(Message(CheckWeight(std::nan(""), 3, "/w.npy")),
            "/w.npy: weights[3] = nan; want a number of 0 to 1e+100");
  EXPECT_FALSE(CheckWeight(std::numeric_limits<double>::infinity(), 0).ok());
}

}  // namespace
}  // namespace leat
