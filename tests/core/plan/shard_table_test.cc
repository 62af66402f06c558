// SPDX-License-Identifier: Apache-2.0
#include "core/plan/shard_table.h"

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMaxSamples = uint64_t{1} << 48;

ShardTable Uniform(uint64_t samples, uint64_t size) {
  auto table = ShardTable::Uniform(samples, size);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

std::string ErrorOf(const absl::StatusOr<ShardTable>& table) {
  EXPECT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(table.status()));
}

// Checks that ranges are not empty, are consecutive and cover all samples, and
// that ShardOf is their inverse.
void ExpectConsistent(const ShardTable& table) {
  uint64_t next = 0;
  for (uint32_t shard = 0; shard < table.num_shards(); ++shard) {
    const ShardTable::Range range = table.range(shard);
    ASSERT_EQ(range.begin, next);
    ASSERT_GT(range.size(), 0u);
    ASSERT_EQ(table.ShardOf(range.begin), shard);
    ASSERT_EQ(table.ShardOf(range.begin + range.size() / 2), shard);
    ASSERT_EQ(table.ShardOf(range.end - 1), shard);
    next = range.end;
  }
  EXPECT_EQ(next, table.num_samples());
}

TEST(ShardTable, OfNothingHasNoShards) {
  EXPECT_EQ(ShardTable().num_shards(), 0u);
  EXPECT_EQ(Uniform(0, 10).num_shards(), 0u);
  const auto table = ShardTable::FromSizes({});
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->num_samples(), 0u);
}

TEST(ShardTable, UniformHasAShorterLastShard) {
  const ShardTable table = Uniform(10, 4);
  EXPECT_TRUE(table.uniform());
  EXPECT_EQ(table.num_shards(), 3u);
  EXPECT_EQ(table.range(2), (ShardTable::Range{8, 10}));
}

TEST(ShardTable, UniformIsConsistent) {
  for (uint64_t samples = 1; samples < 60; ++samples)
    for (uint64_t size = 1; size < 65; ++size)
      ExpectConsistent(Uniform(samples, size));
  ExpectConsistent(Uniform(kMaxSamples, kMaxSamples / kMaxShards));
  ExpectConsistent(Uniform(5, ~uint64_t{0}));
}

TEST(ShardTable, FromSizesIsConsistent) {
  const std::vector<uint64_t> sizes = {3, 1, 1000, 1, 1, 7, kMaxSamples / 2, 1};
  const auto table = ShardTable::FromSizes(sizes);
  ASSERT_TRUE(table.ok());
  EXPECT_FALSE(table->uniform());
  ExpectConsistent(*table);
  for (size_t i = 0; i < sizes.size(); ++i)
    EXPECT_EQ(table->range(static_cast<uint32_t>(i)).size(), sizes[i]);
}

TEST(ShardTable, ErrorsNameTheValueAndTheLimit) {
  EXPECT_EQ(ErrorOf(ShardTable::Uniform(5, 0)),
            "shard size 0: want at least 1");
  EXPECT_EQ(
      ErrorOf(ShardTable::Uniform(65537, 1)),
      "65537 samples in shards of 1 are 65537 shards: want at most 65536, "
      "so a shard size of at least 2");
  EXPECT_THAT(ErrorOf(ShardTable::Uniform(kMaxSamples + 1, kMaxSamples)),
              HasSubstr("want at most 281474976710656"));
  EXPECT_EQ(ErrorOf(ShardTable::FromSizes(std::vector<uint64_t>{1, 0, 2})),
            "shard 1 has 0 samples: want at least 1");
  EXPECT_EQ(ErrorOf(ShardTable::FromSizes(std::vector<uint64_t>(65537, 1))),
            "65537 shards: want at most 65536");
  EXPECT_THAT(
      ErrorOf(ShardTable::FromSizes(std::vector<uint64_t>{kMaxSamples, 1})),
      HasSubstr("shard 1 with 1 samples"));
  // The sum must not overflow.
  EXPECT_THAT(
      ErrorOf(ShardTable::FromSizes(std::vector<uint64_t>{2, ~uint64_t{0}})),
      HasSubstr("shard 1 with"));
}

TEST(ShardTable, DefaultShardSizeGivesAbout512Shards) {
  EXPECT_EQ(ShardTable::DefaultShardSize(0), 1u);
  EXPECT_EQ(ShardTable::DefaultShardSize(500), 1u);
  EXPECT_EQ(ShardTable::DefaultShardSize(513), 2u);
  EXPECT_EQ(ShardTable::DefaultShardSize(100'000), 196u);
  EXPECT_EQ(ShardTable::DefaultShardSize(1'281'167), 1024u);
}

TEST(ShardTable, DefaultShardSizeIsAlwaysAccepted) {
  for (uint64_t samples = 1; samples <= kMaxSamples; samples *= 2)
    for (uint64_t n :
         {samples - 1, samples, std::min(samples + 1, kMaxSamples)})
      EXPECT_LE(Uniform(n, ShardTable::DefaultShardSize(n)).num_shards(),
                kMaxShards);
}

}  // namespace
}  // namespace leat
