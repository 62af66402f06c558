// SPDX-License-Identifier: Apache-2.0
#include "worker/job/ownership.h"

#include "gtest/gtest.h"

namespace leat::worker {
namespace {

TEST(Ownership, ForgetsTheDatasetThatWasNotUsedForLongest) {
  Ownership ownership(2);
  const OwnedShards nothing = {.owned = {false}};
  ownership.Set("a", nothing);
  ownership.Set("b", nothing);
  EXPECT_FALSE(ownership.Owns("a", 0));
  ownership.Set("c", nothing);
  EXPECT_FALSE(ownership.Owns("a", 0));
  EXPECT_FALSE(ownership.Owns("c", 0));
  EXPECT_TRUE(ownership.Owns("b", 0)) << "as of a dataset that is not known";
}

}  // namespace
}  // namespace leat::worker
