// SPDX-License-Identifier: Apache-2.0
#include "core/observe/stages.h"

#include <atomic>
#include <latch>
#include <thread>

#include "gtest/gtest.h"

namespace leat {
namespace {

using std::chrono::nanoseconds;

TEST(Stages, AStagesTimeHasNoneOfThoseInsideIt) {
  FakeClock clock;
  StageClocks clocks(clock);
  {
    StageThread enrolled(&clocks);
    clock.Advance(nanoseconds(1));
    {
      StageScope read(Stage::kRead);
      clock.Advance(nanoseconds(20));
      {
        StageScope open(Stage::kOpen);
        clock.Advance(nanoseconds(300));
      }
      clock.Advance(nanoseconds(4000));
    }
    clock.Advance(nanoseconds(50'000));
  }
  const StageTimes times = clocks.Fold();
  EXPECT_EQ(times.of(Stage::kRead).busy_ns, 4020u);
  EXPECT_EQ(times.of(Stage::kRead).items, 1u);
  EXPECT_EQ(times.of(Stage::kOpen).busy_ns, 300u);
  EXPECT_EQ(times.of(Stage::kOpen).items, 1u);
  EXPECT_EQ(times.of(Stage::kNone).busy_ns, 50'001u);
  EXPECT_EQ(times.of(Stage::kDecode).busy_ns, 0u);
}

TEST(Stages, WhatIsUnderWayCounts) {
  FakeClock clock;
  StageClocks clocks(clock);
  StageThread enrolled(&clocks);
  StageScope read(Stage::kRead);
  clock.Advance(std::chrono::seconds(30));
  EXPECT_EQ(clocks.Fold().of(Stage::kRead).busy_ns, 30'000'000'000u);
  clock.Advance(std::chrono::seconds(30));
  EXPECT_EQ(clocks.Fold().of(Stage::kRead).busy_ns, 60'000'000'000u);
}

TEST(Stages, AThreadThatIsNotEnrolledIsNotMeasured) {
  FakeClock clock;
  StageClocks clocks(clock);
  {
    StageScope read(Stage::kRead);
    clock.Advance(nanoseconds(7));
  }
  EXPECT_EQ(clocks.Fold().of(Stage::kRead).busy_ns, 0u);
}

// No fold counts a piece twice, at any time, and none is lost at the end: all
// stages together are the time for which the thread was enrolled.
TEST(Stages, EveryFoldAddsUpToTheTime) {
  const Clock& clock = Clock::Real();
  StageClocks clocks(clock);
  std::atomic<bool> stop = false;
  std::latch begun(1);
  MonotonicTime first;
  Duration inside{0};
  std::thread thread([&] {
    first = clock.Now();
    StageThread enrolled(&clocks);
    const MonotonicTime begin = clock.Now();
    begun.count_down();
    while (!stop) {
      StageScope decode(Stage::kDecode);
      StageScope augment(Stage::kAugment);
    }
    inside = clock.Now() - begin;
  });
  begun.wait();
  const auto sum = [&clocks] {
    int64_t ns = 0;
    for (const StageTimes::One& one : clocks.Fold().all)
      ns += static_cast<int64_t>(one.busy_ns);
    return ns;
  };
  for (int i = 0; i < 2000; ++i) {
    const int64_t folded = sum();
    ASSERT_LE(folded, Duration(clock.Now() - first).count());
  }
  stop = true;
  thread.join();
  EXPECT_GE(sum(), inside.count());
  const StageTimes times = clocks.Fold();
  EXPECT_EQ(times.of(Stage::kDecode).items, times.of(Stage::kAugment).items);
  EXPECT_GT(times.of(Stage::kDecode).items, 0u);
}

TEST(Stages, HaveNames) {
  EXPECT_EQ(Name(Stage::kNone), "other");
  EXPECT_EQ(Name(Stage::kDecode), "decode");
  EXPECT_EQ(Name(Stage::kTrain), "train");
}

}  // namespace
}  // namespace leat
