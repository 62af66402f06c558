// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "core/bounded_queue.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using std::chrono::milliseconds;

const MonotonicTime kForever = MonotonicTime::max();
const MonotonicTime kPast{};

TEST(Mutex, LetsOneThreadInAtATime) {
  Mutex mu;
  int counter = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        MutexLock lock(&mu);
        mu.AssertHeld();
        ++counter;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, 8000);
}

TEST(CondVar, WakesTheWaiter) {
  Mutex mu;
  CondVar changed;
  bool ready = false;
  std::thread waker([&] {
    MutexLock lock(&mu);
    ready = true;
    changed.NotifyOne();
  });
  {
    MutexLock lock(&mu);
    while (!ready) changed.Wait(&mu);
  }
  waker.join();
}

TEST(CondVar, GivesUpAtTheDeadline) {
  Mutex mu;
  CondVar never;
  MutexLock lock(&mu);
  EXPECT_FALSE(never.WaitUntil(&mu, kPast));
  const MonotonicTime deadline = Clock::Real().Now() + milliseconds(2);
  while (never.WaitUntil(&mu, deadline)) {
  }
  EXPECT_GE(Clock::Real().Now(), deadline);
}

TEST(Clock, RealNeverGoesBack) {
  const MonotonicTime before = Clock::Real().Now();
  EXPECT_GE(Clock::Real().Now(), before);
  EXPECT_GT(Clock::Real().WallNow(), WallTime(std::chrono::hours(24 * 365)));
}

TEST(Clock, FakeMovesOnlyWhenTold) {
  FakeClock clock;
  const MonotonicTime before = clock.Now();
  const WallTime wall = clock.WallNow();
  EXPECT_EQ(clock.Now(), before);
  clock.Advance(milliseconds(5));
  EXPECT_EQ(clock.Now() - before, milliseconds(5));
  EXPECT_EQ(clock.WallNow() - wall, milliseconds(5));
}

TEST(BoundedQueue, IsFirstInFirstOut) {
  BoundedQueue<int> queue(3);
  for (int i : {1, 2, 3}) EXPECT_TRUE(queue.TryPush(std::move(i)));
  EXPECT_EQ(queue.size(), 3u);
  for (int i : {1, 2, 3}) EXPECT_EQ(queue.Pop(kPast), i);
}

TEST(BoundedQueue, RefusesMoreThanItsLimitAndLeavesTheItem) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.TryPush(std::make_unique<int>(1)));
  auto item = std::make_unique<int>(2);
  EXPECT_FALSE(queue.TryPush(std::move(item)));
  EXPECT_NE(item, nullptr);
  EXPECT_TRUE(queue.Pop(kPast).has_value());
  EXPECT_TRUE(queue.TryPush(std::move(item)));
}

TEST(BoundedQueue, OfLimitZeroTakesNothing) {
  BoundedQueue<int> queue(0);
  EXPECT_FALSE(queue.TryPush(1));
}

TEST(BoundedQueue, PopOfAnEmptyQueueEndsAtTheDeadline) {
  BoundedQueue<int> queue(1);
  EXPECT_EQ(queue.Pop(kPast), std::nullopt);
}

TEST(BoundedQueue, WhenClosedGivesOutWhatIsInAndThenEnds) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.TryPush(1));
  queue.Close();
  queue.Close();
  EXPECT_FALSE(queue.TryPush(2));
  EXPECT_EQ(queue.Pop(kForever), 1);
  EXPECT_EQ(queue.Pop(kForever), std::nullopt);
}

TEST(BoundedQueue, CloseWakesThoseWhoWait) {
  BoundedQueue<int> empty(1);
  std::vector<std::thread> waiters;
  for (int i = 0; i < 2; ++i)
    waiters.emplace_back([&] { EXPECT_EQ(empty.Pop(kForever), std::nullopt); });
  empty.Close();
  for (std::thread& waiter : waiters) waiter.join();
}

TEST(BoundedQueue, LosesAndRepeatsNothingBetweenThreads) {
  constexpr int kThreads = 3, kItems = 2000;
  BoundedQueue<int> queue(4);
  std::vector<std::thread> producers, consumers;
  std::vector<std::atomic<int>> seen(kThreads * kItems);
  for (int t = 0; t < kThreads; ++t) {
    producers.emplace_back([&, t] {
      for (int i = 0; i < kItems; ++i)
        while (!queue.TryPush(t * kItems + i)) std::this_thread::yield();
    });
    consumers.emplace_back([&] {
      while (const std::optional<int> item = queue.Pop(kForever)) ++seen[*item];
    });
  }
  for (std::thread& producer : producers) producer.join();
  queue.Close();
  for (std::thread& consumer : consumers) consumer.join();
  for (const std::atomic<int>& count : seen) ASSERT_EQ(count, 1);
}

}  // namespace
}  // namespace leat
