// SPDX-License-Identifier: Apache-2.0
#include "core/plan/sample_order.h"

#include <algorithm>
#include <numeric>
#include <vector>

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

TEST(SampleOrder, AnEmptyRunMapsNothing) {
  const SampleOrder order(Of(Order::kShardShuffle), Table(), 4);
  EXPECT_TRUE(Pass(order, 0, {.range = {5, 5}}).empty());
}

}  // namespace
}  // namespace leat
