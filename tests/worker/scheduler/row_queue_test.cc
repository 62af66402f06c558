// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/row_queue.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace leat::worker {
namespace {

using Step = RowQueue::Step;

constexpr uint64_t kSteps = 10;  // per epoch

struct Stream : RowQueue::Place {
  std::optional<Step> next;  // of a row that may begin
};

class RowQueueTest : public ::testing::Test {
 protected:
  Stream* Choose(uint64_t cohort = 2) {
    looks_ = 0;
    const auto look = [this](RowQueue::Place& place) {
      ++looks_;
      return static_cast<Stream&>(place).next;
    };
    return static_cast<Stream*>(queue_.Choose(look, kSteps, cohort));
  }
  void Ready(Stream* stream, const Step& step) {
    stream->next = step;
    queue_.Put(stream, step);
  }

  RowQueue queue_;
  int looks_ = 0;
};

TEST_F(RowQueueTest, NobodyIsChosenOfNone) {
  EXPECT_EQ(Choose(), nullptr);
  Stream waits;
  queue_.Put(&waits, {0, 0});
  EXPECT_EQ(Choose(), nullptr);
  queue_.Remove(&waits);
  queue_.Remove(&waits);
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(RowQueueTest, TheLeastTimeIsNext) {
  Stream a, b;
  Ready(&a, {0, 0});
  Ready(&b, {0, 0});
  queue_.Spend(&a, 5);
  EXPECT_EQ(Choose(), &b);
  queue_.Spend(&b, 9);
  EXPECT_EQ(Choose(), &a);
  queue_.Spend(&b, -8);
  EXPECT_EQ(Choose(), &b);
}

TEST_F(RowQueueTest, WhoComesBackStartsAtTheFloor) {
  Stream a, b;
  Ready(&a, {0, 0});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Choose(), &a);
    queue_.Spend(&a, 100);
  }
  Ready(&b, {0, 0});
  EXPECT_EQ(Choose(), &b);
  EXPECT_EQ(b.vtime(), 900) << "what it did not use is not made up for";
  queue_.Spend(&b, 101);
  EXPECT_EQ(Choose(), &a);
  // The same for one that had to wait in between.
  b.next.reset();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Choose(), &a);
    queue_.Spend(&a, 100);
  }
  b.next = {0, 0};
  EXPECT_EQ(Choose(), &b);
  EXPECT_EQ(b.vtime(), 1900);
}

TEST_F(RowQueueTest, AnEarlierStepOfTheCohortGoesFirst) {
  Stream ahead, behind, far;
  Ready(&ahead, {1, 1});
  Ready(&behind, {0, 9});
  Ready(&far, {0, 8});
  queue_.Spend(&behind, 50);
  queue_.Spend(&far, 60);
  EXPECT_EQ(Choose(/*cohort=*/1), &ahead);
  EXPECT_EQ(Choose(/*cohort=*/2), &behind);
  EXPECT_EQ(Choose(/*cohort=*/3), &far);
  EXPECT_EQ(Choose(/*cohort=*/1000), &far) << "before the first epoch";
  far.next.reset();
  EXPECT_EQ(Choose(/*cohort=*/3), &behind);
}

// Chooses by the rules, over all streams.
const Stream* ByRules(const std::vector<std::unique_ptr<Stream>>& streams,
                      uint64_t cohort) {
  const Stream* fair = nullptr;
  for (const auto& each : streams)
    if (each->queued() && each->next &&
        (fair == nullptr || each->vtime() < fair->vtime()))
      fair = each.get();
  if (fair == nullptr) return nullptr;
  const auto linear = [](const Step& step) {
    return static_cast<int64_t>(step.first * kSteps + step.second);
  };
  const int64_t least = linear(*fair->next) - static_cast<int64_t>(cohort);
  const Stream* chosen = fair;
  for (const auto& each : streams) {
    if (!each->queued() || !each->next || linear(*each->next) < least) continue;
    if (*each->next < *chosen->next) chosen = each.get();
  }
  return chosen;
}

// Streams that are always ready keep their times: the queue must find the same
// stream as an exhaustive search, whatever happened before.
TEST_F(RowQueueTest, ChoosesAsALookAtAllOfThemDoes) {
  std::mt19937 random(3);
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 40; ++i) {
    streams.push_back(std::make_unique<Stream>());
    Ready(streams.back().get(), {0, random() % 3});
  }
  // Every stream has been looked at.
  std::uniform_real_distribution<double> some(1, 100);  // no two alike
  for (int i = 0; i < 40; ++i) queue_.Spend(Choose(0), some(random));
  for (int turn = 0; turn < 20'000; ++turn) {
    const uint64_t cohort = random() % 4;
    const Stream* const want = ByRules(streams, cohort);
    Stream* const chosen = Choose(cohort);
    ASSERT_NE(chosen, nullptr);
    ASSERT_EQ(*chosen->next, *want->next) << turn;
    if (cohort == 0) {
      ASSERT_EQ(chosen->vtime(), want->vtime()) << turn;
    }
    queue_.Spend(chosen, some(random));
    if (random() % 3 == 0) {
      Step next = *chosen->next;
      if (++next.second == kSteps) next = {next.first + 1, 0};
      Ready(chosen, next);
    }
    Stream* const other = streams[random() % streams.size()].get();
    queue_.Spend(other, some(random) / 5 - 10);
  }
}

TEST_F(RowQueueTest, AChoiceLooksAtFewOfMany) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (uint64_t i = 0; i < 1000; ++i) {
    streams.push_back(std::make_unique<Stream>());
    Ready(streams.back().get(), {0, i % kSteps});
  }
  int most = 0;
  for (int turn = 0; turn < 5000; ++turn) {
    Stream* const chosen = Choose();
    ASSERT_NE(chosen, nullptr);
    most = std::max(most, looks_);
    queue_.Spend(chosen, 100);
  }
  EXPECT_LE(most, 3);
}

// The search continues to the first one that has a row, however many wait.
TEST_F(RowQueueTest, OnesThatWaitHoldUpNobody) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 100; ++i) {
    streams.push_back(std::make_unique<Stream>());
    queue_.Put(streams.back().get(), {0, 0});
  }
  Stream ready;
  Ready(&ready, {0, 5});
  queue_.Spend(&ready, 1e9);
  EXPECT_EQ(Choose(), &ready);
  for (const auto& each : streams) queue_.Remove(each.get());
  EXPECT_EQ(Choose(), &ready);
  queue_.Remove(&ready);
}

}  // namespace
}  // namespace leat::worker
