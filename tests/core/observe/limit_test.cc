// SPDX-License-Identifier: Apache-2.0
#include "core/observe/limit.h"

#include "gtest/gtest.h"

namespace leat {
namespace {

TEST(Limit, HasANameForProgramsAndOneForPeople) {
  EXPECT_EQ(Name(Limit::kUnknown), "unknown");
  EXPECT_EQ(Name(Limit::kWorkers), "workers");
  EXPECT_EQ(Name(Limit::kDecodeCpu), "decode_cpu");
  EXPECT_EQ(Title(Limit::kDecodeCpu), "decode and augment");
  EXPECT_EQ(TitleOf("source"), "the script's own source");
  EXPECT_EQ(TitleOf("none of them"), "none of them");
}

}  // namespace
}  // namespace leat
