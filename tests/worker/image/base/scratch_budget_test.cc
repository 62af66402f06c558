// SPDX-License-Identifier: Apache-2.0
#include "worker/image/base/scratch_budget.h"

#include <atomic>
#include <thread>
#include <vector>

#include "core/cluster/fault.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/program/support.h"
#include "worker/image/program/scratch_state.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using testing::MakeJpeg;

void WaitForWaiting(const ScratchBudget& budget, size_t count) {
  while (budget.waiting() != count) std::this_thread::yield();
}

TEST(ScratchBudget, ServesThoseWhoWaitInTheirOrder) {
  ScratchBudget budget(100);
  ASSERT_TRUE(budget.Take(60).ok());
  std::atomic<int> served = 0;
  int large = 0, small = 0;
  std::thread first([&] {
    EXPECT_TRUE(budget.Take(80).ok());
    large = ++served;
    budget.Return(80);
  });
  WaitForWaiting(budget, 1);
  std::thread second([&] {
    EXPECT_TRUE(budget.Take(30).ok());
    small = ++served;
    budget.Return(30);
  });
  WaitForWaiting(budget, 2);
  // There would be room for the second row, and for this one.
  EXPECT_FALSE(budget.TryTake(10));
  EXPECT_EQ(budget.taken(), 60u);
  budget.Return(60);
  first.join();
  second.join();
  EXPECT_EQ(large, 1);
  EXPECT_EQ(small, 2);
  EXPECT_EQ(budget.taken(), 0u);
  EXPECT_TRUE(budget.TryTake(100));
}

TEST(ScratchBudget, MoreThanThereIsIsTheWorkersFault) {
  ScratchBudget budget(100);
  const absl::Status status = budget.Take(101);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(FaultOf(status), Fault::kWorker);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("needs 101 bytes of working memory"));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("--decode-memory"));
}

TEST(ScratchBudget, WaitsEnd) {
  ScratchBudget impatient(100, std::chrono::milliseconds(1));
  ASSERT_TRUE(impatient.Take(100).ok());
  const absl::Status late = impatient.Take(1);
  EXPECT_EQ(late.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(FaultOf(late), Fault::kTransient);
  EXPECT_EQ(impatient.waiting(), 0u);
  ScratchBudget stopped(100);
  ASSERT_TRUE(stopped.Take(100).ok());
  std::thread waiting([&] {
    EXPECT_EQ(stopped.Take(1).code(), absl::StatusCode::kUnavailable);
  });
  WaitForWaiting(stopped, 1);
  stopped.Stop();
  waiting.join();
  EXPECT_FALSE(stopped.Take(1).ok());
}

constexpr uint64_t kOwn = 200'000;

ImageLimits Sharing(ScratchBudget* budget) {
  return {.kept_scratch_bytes = kOwn, .budget = budget};
}
Graph WholeImages() {
  return ChainOf({{"resize", {}, {{"size", std::vector<int64_t>{8}}}}});
}

TEST(ScratchBudget, RowsThatLackMemoryAreComputedAgainToTheSameBytes) {
  const std::string large = MakeJpeg({.width = 700, .height = 500});
  Runner plain(WholeImages(), 1, false), sharing(WholeImages(), 1, false);
  ScratchBudget budget(10'000'000);
  Scratch alone({}), scratch(Sharing(&budget));
  ASSERT_TRUE(plain.Run(large, alone).ok());
  const uint64_t once = alone.state()->steps_run;
  const absl::Status status = sharing.Run(large, scratch);
  ASSERT_TRUE(status.ok()) << Message(status);
  EXPECT_EQ(sharing.outputs, plain.outputs);
  const uint64_t first = scratch.state()->steps_run;
  EXPECT_GT(first, once);
  EXPECT_EQ(budget.taken(), 0u);
  // The next row begins with the memory that the first needed.
  ASSERT_TRUE(sharing.Run(large, scratch).ok());
  EXPECT_EQ(scratch.state()->steps_run, first + once);
  EXPECT_EQ(budget.taken(), 0u);
  // Small rows do not use the budget.
  ASSERT_TRUE(budget.TryTake(10'000'000));
  const std::string small = MakeJpeg({.width = 70, .height = 50});
  ASSERT_TRUE(sharing.Run(small, scratch).ok());
  ASSERT_TRUE(plain.Run(small, alone).ok());
  EXPECT_EQ(sharing.outputs, plain.outputs);
}

TEST(ScratchBudget, AllThreadsTogetherHaveNoMore) {
  const std::string large = MakeJpeg({.width = 700, .height = 500});
  Runner plain(WholeImages(), 1, false);
  Scratch alone({});
  ASSERT_TRUE(plain.Run(large, alone).ok());
  // There is room for one row, but not for two.
  ScratchBudget budget(1'500'000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      Runner runner(WholeImages(), 1, false);
      Scratch scratch(Sharing(&budget));
      for (int row = 0; row < 10; ++row) {
        const absl::Status status = runner.Run(large, scratch);
        EXPECT_TRUE(status.ok()) << Message(status);
        EXPECT_EQ(runner.outputs, plain.outputs);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.taken(), 0u);
}

TEST(ScratchBudget, WhereThereIsTooLittleTheRowIsForAnotherWorker) {
  ScratchBudget budget(100'000);
  Runner runner(WholeImages(), 1, false);
  Scratch scratch(Sharing(&budget));
  const absl::Status status =
      runner.Run(MakeJpeg({.width = 700, .height = 500}), scratch);
  EXPECT_EQ(FaultOf(status), Fault::kWorker);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("--decode-memory"));
  // Later rows are not affected.
  EXPECT_TRUE(runner.Run(MakeJpeg({.width = 70, .height = 50}), scratch).ok());
}

TEST(ScratchBudget, WhatALibraryTakesCounts) {
  ScratchBudget budget(100'000);
  Runner runner(ChainOf({{"crop", {}, {{"size", std::vector<int64_t>{8}}}}}),
                1);
  Scratch scratch(Sharing(&budget));
  // The first file decodes a window; the other stores its coefficients.
  EXPECT_TRUE(
      runner.Run(MakeJpeg({.width = 700, .height = 500}), scratch).ok());
  const absl::Status status = runner.Run(
      MakeJpeg({.width = 700, .height = 500, .progressive = true}), scratch);
  EXPECT_EQ(FaultOf(status), Fault::kWorker) << Message(status);
}

}  // namespace
}  // namespace leat::worker
