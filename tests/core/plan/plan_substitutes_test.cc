// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <set>

#include "core/plan/plan.h"
#include "gtest/gtest.h"
#include "tests/core/plan/small_plans.h"

namespace leat {
namespace {

TEST(Substitute, IsNeverTheSampleAndNeverTwiceTheSame) {
  for (uint64_t samples : {17, 100, 1'000'000'000}) {
    const Plan plan(PlanSpec(1), PlanTable(samples, 1 << 20));
    for (uint64_t sample : {uint64_t{0}, samples / 2, samples - 1}) {
      std::set<uint64_t> substitutes;
      for (uint32_t attempt = 0; attempt < kMaxSubstitutes; ++attempt) {
        const uint64_t substitute = plan.Substitute(0, sample, attempt);
        EXPECT_LT(substitute, samples);
        EXPECT_NE(substitute, sample);
        EXPECT_EQ(substitute, plan.Substitute(0, sample, attempt));
        substitutes.insert(substitute);
      }
      EXPECT_EQ(substitutes.size(), kMaxSubstitutes);
    }
  }
}

TEST(Substitute, OfTinyDatasetsComesRoundAgain) {
  const Plan one(PlanSpec(1), PlanTable(1));
  EXPECT_EQ(one.Substitute(0, 0, 0), 0u);
  const Plan two(PlanSpec(1), PlanTable(2));
  for (uint32_t attempt = 0; attempt < kMaxSubstitutes; ++attempt) {
    EXPECT_EQ(two.Substitute(0, 0, attempt), 1u);
    EXPECT_EQ(two.Substitute(0, 1, attempt), 0u);
  }
}

TEST(Substitute, IsAnotherInAnotherEpochAndSpreadsOverAll) {
  const Plan plan(PlanSpec(1), PlanTable(1000));
  std::set<uint64_t> over_epochs, over_samples;
  for (uint64_t i = 0; i < 1000; ++i) {
    over_epochs.insert(plan.Substitute(i, 5, 0));
    over_samples.insert(plan.Substitute(0, i, 0));
  }
  // 1000 draws of 1000 hit 632 on average, give or take 10.
  EXPECT_NEAR(static_cast<double>(over_epochs.size()), 632, 50);
  EXPECT_NEAR(static_cast<double>(over_samples.size()), 632, 50);
}

}  // namespace
}  // namespace leat
