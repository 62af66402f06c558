// SPDX-License-Identifier: Apache-2.0
#include "worker/source/reader_abilities.h"

#include <vector>

#include "core/plan/abilities.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

// Whether it is there depends on the machine; it is named in any case.
TEST(ReaderAbilities, AreKnownWithTheReasonWhyOneIsMissing) {
  const std::vector<ReaderAbility> abilities = ReaderAbilities();
  ASSERT_EQ(abilities.size(), 1u);
  EXPECT_EQ(abilities[0].name, kParquetAbility);
  EXPECT_EQ(CheckAbility(abilities[0].name), absl::OkStatus());
  if (!abilities[0].has.ok()) {
    EXPECT_THAT(std::string(Message(abilities[0].has)),
                testing::StartsWith("Parquet cannot be read: "));
  }
  EXPECT_EQ(abilities[0].has.code(), CanReadParquet().code());
}

}  // namespace
}  // namespace leat::worker
