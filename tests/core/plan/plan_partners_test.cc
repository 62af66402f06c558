// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <set>
#include <vector>

#include "core/plan/plan.h"
#include "gtest/gtest.h"
#include "tests/core/plan/small_plans.h"

namespace leat {
namespace {

TEST(Partner, OfEveryRowIsAnotherAndEveryRowIsOnes) {
  for (const uint32_t num_parts : {0u, 3u, 4u})
    for (const LastBatch last_batch : kPlanPolicies) {
      const Plan plan(
          PlanSpec(12, Order::kGlobalShuffle, last_batch, num_parts),
          PlanTable(35));
      for (uint64_t step = 0; step < plan.steps_per_epoch(); ++step) {
        const std::vector<uint64_t> samples =
            SamplesOf(plan, 1, step, PlanRows(12));
        std::set<uint32_t> partners, rows;
        for (uint32_t row = 0; row < 12; ++row) {
          if (samples[row] == kNoSample) continue;
          const uint32_t partner = plan.PartnerOf(1, step, row);
          ASSERT_LT(partner, 12u);
          EXPECT_FALSE(plan.IsPadding(1, step, partner));
          if (plan.IsPadding(1, step, row)) continue;
          EXPECT_NE(partner, row);
          rows.insert(row);
          partners.insert(partner);
        }
        EXPECT_EQ(rows.size(), plan.rows_in(step));
        EXPECT_EQ(partners, rows) << "step " << step;
      }
    }
}

TEST(Partner, OfARowAloneIsItself) {
  EXPECT_EQ(Plan(PlanSpec(1), PlanTable(3)).PartnerOf(0, 2, 0), 0u);
  const Plan last(PlanSpec(4, Order::kSequential, LastBatch::kPartial),
                  PlanTable(5));
  EXPECT_EQ(last.PartnerOf(0, 1, 0), 0u);
}

TEST(Partner, IsAtADistanceThatIsDrawnForEachStep) {
  const Plan plan(PlanSpec(5), PlanTable(5000));
  std::vector<int> times(5);
  for (uint64_t step = 0; step < 1000; ++step) {
    const uint32_t shift = plan.PartnerOf(3, step, 0);
    for (uint32_t row = 1; row < 5; ++row)
      EXPECT_EQ(plan.PartnerOf(3, step, row), (row + shift) % 5);
    ++times[shift];
  }
  EXPECT_EQ(times[0], 0);
  for (int shift = 1; shift < 5; ++shift) EXPECT_NEAR(times[shift], 250, 60);
  // Another seed and another epoch give other distances.
  JobSpec other = PlanSpec(5);
  other.seed = 8;
  const Plan reseeded(other, PlanTable(5000));
  int same_seed = 0, same_epoch = 0;
  for (uint64_t step = 0; step < 1000; ++step) {
    const uint32_t partner = plan.PartnerOf(3, step, 0);
    same_seed += partner == reseeded.PartnerOf(3, step, 0);
    same_epoch += partner == plan.PartnerOf(4, step, 0);
  }
  EXPECT_NEAR(same_seed, 250, 60);
  EXPECT_NEAR(same_epoch, 250, 60);
}

}  // namespace
}  // namespace leat
