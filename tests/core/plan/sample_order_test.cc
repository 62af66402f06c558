// SPDX-License-Identifier: Apache-2.0
#include "core/plan/sample_order.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <vector>

#include "core/random/permute_each.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using Samples = std::vector<uint64_t>;

constexpr SampleOrder::Run kRun = {.range = {10, 50}, .number = 2};

SampleOrder::Options Of(Order order) {
  return {.seed = 7, .order = order, .window = 2};
}

ShardTable Table() { return ShardTable::Uniform(60, 5).value(); }

Samples Pass(const SampleOrder& order, uint64_t pass,
             const SampleOrder::Run& run = kRun) {
  Samples all(run.range.size());
  std::iota(all.begin(), all.end(), uint64_t{0});
  order.Map(pass, run, all);
  return all;
}

TEST(SampleOrder, APassHasEverySampleOfItsRunOnce) {
  Samples run(kRun.range.size());
  std::iota(run.begin(), run.end(), kRun.range.begin);
  for (const Order kind :
       {Order::kSequential, Order::kGlobalShuffle, Order::kShardShuffle}) {
    const SampleOrder order(Of(kind), Table(), 1);
    Samples samples = Pass(order, 3);
    EXPECT_EQ(samples == run, kind == Order::kSequential);
    std::ranges::sort(samples);
    EXPECT_EQ(samples, run);
  }
}

TEST(SampleOrder, PassesAndRunsHaveOrdersOfTheirOwn) {
  for (const Order kind : {Order::kGlobalShuffle, Order::kShardShuffle}) {
    const SampleOrder order(Of(kind), Table(), 1);
    EXPECT_NE(Pass(order, 0), Pass(order, 1));
    EXPECT_NE(Pass(order, 0), Pass(order, 0, {.range = kRun.range}));
  }
}

// More orders than are kept come and go, and each is made anew as it was.
TEST(SampleOrder, AnOrderThatWasDroppedComesBackTheSame) {
  const SampleOrder order(Of(Order::kShardShuffle), Table(), 1);
  const Samples first = Pass(order, 0);
  for (uint64_t pass = 1; pass < 100; ++pass) Pass(order, pass);
  EXPECT_EQ(Pass(order, 0), first);
}

// Few positions and many, of every kind of order, and a run without samples.
TEST(SampleOrder, PartsAreMappedTogetherAsEachAlone) {
  std::deque<SampleOrder> orders;
  for (const Order kind : {Order::kSequential, Order::kGlobalShuffle,
                           Order::kShardShuffle, Order::kGlobalShuffle})
    orders.emplace_back(Of(kind), Table(), 1);
  constexpr uint64_t kParts = 300;
  std::vector<Samples> together, alone;
  std::vector<PermutedIndices> few;
  together.reserve(kParts);
  for (uint64_t i = 0; i < kParts; ++i) {
    const SampleOrder& order = orders[i % orders.size()];
    const SampleOrder::Run run =
        i % 5 == 0 ? SampleOrder::Run{{0, 60}, 0} : kRun;
    Samples positions(i % 40);
    std::iota(positions.begin(), positions.end(), uint64_t{0});
    alone.push_back(positions);
    order.Map(i % 3, run, alone.back());
    together.push_back(positions);
    order.MapOrAdd(i % 3, run, together.back(), &few);
  }
  orders[1].MapOrAdd(0, {.range = {5, 5}, .number = 0}, {}, &few);
  EXPECT_GT(few.size(), kParts / 8);
  PermuteEach(few);
  EXPECT_EQ(together, alone);
}

TEST(SampleOrder, AnEmptyRunMapsNothing) {
  const SampleOrder order(Of(Order::kShardShuffle), Table(), 4);
  EXPECT_TRUE(Pass(order, 0, {.range = {5, 5}}).empty());
}

}  // namespace
}  // namespace leat
