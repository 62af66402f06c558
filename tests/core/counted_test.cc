// SPDX-License-Identifier: Apache-2.0
#include "core/counted.h"

#include "gtest/gtest.h"

namespace leat {
namespace {

TEST(Counted, OneIsOneAndOthersAreMany) {
  EXPECT_EQ(Counted(0, "thread"), "0 threads");
  EXPECT_EQ(Counted(1, "thread"), "1 thread");
  EXPECT_EQ(Counted(12, "thread"), "12 threads");
  EXPECT_EQ(Counted(1, "index", "indexes"), "1 index");
  EXPECT_EQ(Counted(2, "index", "indexes"), "2 indexes");
}

}  // namespace
}  // namespace leat
