// SPDX-License-Identifier: Apache-2.0
#include "core/plan/shard_shuffle.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace leat {
namespace {

using Samples = std::vector<uint64_t>;

ShardTable TableOf(const std::vector<uint64_t>& sizes) {
  auto table = ShardTable::FromSizes(sizes);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

// Makes sizes from 1 to 40, drawn with `seed`.
ShardTable IrregularTable(int num_shards, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint64_t> sizes;
  for (int i = 0; i < num_shards; ++i) sizes.push_back(1 + random() % 40);
  return TableOf(sizes);
}

Samples All(const ShardShuffle& shuffle, ShardTable::Range range) {
  Samples samples(range.size());
  std::iota(samples.begin(), samples.end(), uint64_t{0});
  shuffle.MapInPlace(samples);
  return samples;
}

// Checks that each sample of the range occurs once.
void ExpectBijection(const ShardTable& table, ShardTable::Range range,
                     uint32_t window, uint64_t key) {
  Samples samples = All(ShardShuffle(table, range, window, key), range);
  std::sort(samples.begin(), samples.end());
  for (uint64_t i = 0; i < range.size(); ++i)
    ASSERT_EQ(samples[i], range.begin + i)
        << "window " << window << " range " << range.begin << " " << range.end;
}

TEST(ShardShuffle, IsABijectionForIrregularShards) {
  for (int num_shards : {1, 2, 3, 5, 16, 50})
    for (uint32_t window : {1u, 2u, 3u, 4u, 5u, 16u, 49u, 50u, 51u, 1000u, ~0u})
      for (uint64_t key : {0, 1, 2}) {
        const ShardTable table =
            IrregularTable(num_shards, static_cast<uint32_t>(key) + 10);
        ExpectBijection(table, {0, table.num_samples()}, window, key);
      }
}

TEST(ShardShuffle, IsABijectionForShardsOfOneSample) {
  for (uint64_t n = 1; n < 30; ++n)
    for (uint32_t window = 1; window < 34; ++window)
      ExpectBijection(TableOf(std::vector<uint64_t>(n, 1)), {0, n}, window, 3);
}

TEST(ShardShuffle, IsABijectionOfARangeThatCutsShards) {
  const ShardTable table = IrregularTable(9, 4);
  const uint64_t n = table.num_samples();
  for (uint64_t begin = 0; begin < n; begin += 7)
    for (uint64_t end = begin + 1; end <= n; end += 5)
      ExpectBijection(table, {begin, end}, 4, begin);
}

TEST(ShardShuffle, IsABijectionForUniformShards) {
  for (uint64_t n : {1, 10, 64, 1000})
    for (uint64_t size : {1, 3, 64, 5000}) {
      const auto table = ShardTable::Uniform(n, size);
      ASSERT_TRUE(table.ok());
      for (uint32_t window : {1u, 2u, 5u, 16u})
        ExpectBijection(*table, {0, n}, window, n);
    }
}

TEST(ShardShuffle, GivesAnyPositionsInAnyOrder) {
  const ShardTable table = IrregularTable(30, 5);
  const ShardTable::Range range = {0, table.num_samples()};
  const ShardShuffle shuffle(table, range, 6, 8);
  const Samples all = All(shuffle, range);
  std::mt19937 random(1);
  Samples positions;
  for (int i = 0; i < 2000; ++i) positions.push_back(random() % range.size());
  Samples samples = positions;
  shuffle.MapInPlace(samples);
  for (size_t i = 0; i < samples.size(); ++i)
    ASSERT_EQ(samples[i], all[positions[i]]);
}

TEST(ShardShuffle, IsAFunctionOfItsKey) {
  const ShardTable table = IrregularTable(30, 5);
  const ShardTable::Range range = {0, table.num_samples()};
  const auto order = [&](uint64_t key) {
    return All(ShardShuffle(table, range, 6, key), range);
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

// A shard is open from the first to the last of its samples: storage or a cache
// must hold it.
TEST(ShardShuffle, OpensNoMoreShardsAtATimeThanItsWindow) {
  for (uint32_t window : {1u, 2u, 4u, 5u, 16u}) {
    const auto table = ShardTable::Uniform(100 * 50, 50);
    ASSERT_TRUE(table.ok());
    const ShardTable::Range range = {0, table->num_samples()};
    const Samples order = All(ShardShuffle(*table, range, window, 3), range);
    std::vector<uint64_t> first(100, ~0ull), last(100);
    for (uint64_t i = 0; i < order.size(); ++i) {
      const uint32_t shard = table->ShardOf(order[i]);
      first[shard] = std::min(first[shard], i);
      last[shard] = i;
    }
    for (uint64_t i = 0; i < order.size(); ++i) {
      uint32_t open = 0;
      for (size_t shard = 0; shard < 100; ++shard)
        open += first[shard] <= i && i <= last[shard];
      ASSERT_LE(open, window) << window << " at " << i;
    }
  }
}

// A range of half a window's samples has samples of almost all its shards.
TEST(ShardShuffle, MixesTheShardsOfAWindow) {
  constexpr uint64_t kShards = 200, kSize = 100;
  const auto table = ShardTable::Uniform(kShards * kSize, kSize);
  ASSERT_TRUE(table.ok());
  const ShardTable::Range range = {0, table->num_samples()};
  const Samples order = All(ShardShuffle(*table, range, 16, 3), range);
  double sum = 0;
  int stretches = 0;
  for (uint64_t at = 0; at + 256 <= order.size(); at += 256, ++stretches) {
    std::set<uint32_t> shards;
    for (uint64_t i = at; i < at + 256; ++i)
      shards.insert(table->ShardOf(order[i]));
    sum += static_cast<double>(shards.size());
  }
  EXPECT_GT(sum / stretches, 14);
}

TEST(ShardShuffle, ShardsComeInARandomSequence) {
  constexpr uint64_t kShards = 1000, kSize = 4;
  const auto table = ShardTable::Uniform(kShards * kSize, kSize);
  ASSERT_TRUE(table.ok());
  const ShardTable::Range range = {0, table->num_samples()};
  const Samples order = All(ShardShuffle(*table, range, 4, 3), range);
  double displacement = 0;
  for (uint64_t i = 0; i < order.size(); ++i)
    displacement +=
        std::abs(static_cast<double>(order[i]) - static_cast<double>(i));
  displacement /= static_cast<double>(order.size());
  const double third = static_cast<double>(order.size()) / 3;
  EXPECT_NEAR(displacement, third, third * 5 * std::sqrt(0.5 / kShards));
}

TEST(ShardShuffle, OfTheLargestTableIsQuickToMake) {
  const auto table = ShardTable::Uniform(uint64_t{1} << 48, uint64_t{1} << 32);
  ASSERT_TRUE(table.ok());
  ASSERT_EQ(table->num_shards(), kMaxShards);
  const ShardShuffle shuffle(*table, {0, table->num_samples()}, 16, 1);
  Samples samples = {0, 1, (uint64_t{1} << 48) - 1, uint64_t{1} << 40};
  shuffle.MapInPlace(samples);
  for (uint64_t sample : samples) EXPECT_LT(sample, table->num_samples());
  EXPECT_EQ(std::set<uint64_t>(samples.begin(), samples.end()).size(), 4u);
}

}  // namespace
}  // namespace leat
