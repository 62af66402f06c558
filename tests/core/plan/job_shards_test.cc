// SPDX-License-Identifier: Apache-2.0
#include "core/plan/job_shards.h"

#include "gtest/gtest.h"

namespace leat {
namespace {

TEST(JobShards, NumberShardsOfOneDatasetAfterThoseOfAnother) {
  const uint64_t sizes[] = {5, 1, 2};
  const JobShards shards({*ShardTable::Uniform(20, 10),
                          *ShardTable::FromSizes(sizes),
                          *ShardTable::Uniform(3, 10)});
  EXPECT_EQ(shards.num_samples(), 31u);
  EXPECT_EQ(shards.num_shards(), 6u);
  const uint32_t want[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1,
                           1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 4, 4, 5, 5, 5};
  for (uint64_t sample = 0; sample < shards.num_samples(); ++sample)
    EXPECT_EQ(shards.ShardOf(sample), want[sample]) << sample;
}

TEST(JobShards, OfOneDatasetAreThoseOfItsTable) {
  const ShardTable table = *ShardTable::Uniform(25, 10);
  const JobShards shards(table);
  EXPECT_EQ(shards.num_shards(), table.num_shards());
  for (uint64_t sample = 0; sample < table.num_samples(); ++sample)
    EXPECT_EQ(shards.ShardOf(sample), table.ShardOf(sample));
}

}  // namespace
}  // namespace leat
