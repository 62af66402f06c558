// SPDX-License-Identifier: Apache-2.0
#include "core/plan/passed_over.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace leat {
namespace {

TEST(PassedOver, KindsBeyondTheBoundsAreOneEntry) {
  PassedOverCounts counts;
  for (int i = 0; i < 3000; ++i)
    counts.Add("files ." + std::to_string(i), std::to_string(i));
  counts.Add("files .0", "0", 5);
  const std::vector<PassedOver> taken = counts.Take();
  ASSERT_EQ(taken.size(), kMaxPassedOver);
  EXPECT_EQ(taken[0], (PassedOver{"files .0", 6, "0"}));
  uint64_t rest = 0;
  for (size_t i = 1; i + 1 < taken.size(); ++i) {
    EXPECT_TRUE(taken[i].what.starts_with("files .")) << taken[i].what;
    rest += taken[i].count;
  }
  EXPECT_EQ(taken.back().what, "others");
  EXPECT_EQ(taken.back().count, 2999 - rest);
}

}  // namespace
}  // namespace leat
