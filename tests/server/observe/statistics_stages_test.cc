// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/observe/statistics_fixture.h"

namespace leat::server {
namespace {

TEST_F(StatisticsTest, StagesAreSumsOverAllWhoTellOfThem) {
  Duration seen{0};
  EXPECT_TRUE(statistics_.Stages(begin_, &seen).empty());
  for (const char* name : {"w0", "w1"}) {
    statistics_.NoteWorker(name, WorkerAt(0, 0, 0), After(0));
    statistics_.NoteWorker(name, WorkerAt(64, 8 * kSecond, 2 * kSecond),
                           After(2));
  }
  statistics_.NoteWorker("w1", WorkerAt(64, 10 * kSecond, 2 * kSecond),
                         After(4));
  const auto stages = statistics_.Stages(begin_, &seen);
  EXPECT_EQ(seen, std::chrono::seconds(4));
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[1].stage(), v1::STAGE_DECODE);
  EXPECT_EQ(stages[1].places(), 12u);  // 16 for half of the time, then 8
  EXPECT_EQ(stages[1].busy_ns_total(), 18 * kSecond);
  EXPECT_EQ(stages[1].input_ns_total(), 4 * kSecond);
  EXPECT_EQ(statistics_.Stages(After(4), &seen).at(1).busy_ns_total(),
            2 * kSecond);
  // Whatever is reported, a place is not busy for longer than the time.
  statistics_.NoteWorker("w1", WorkerAt(64, ~uint64_t{0}, 0), After(6));
  EXPECT_EQ(statistics_.Stages(After(6), &seen).at(1).busy_ns_total(),
            16 * kSecond);
  // The machine was started less than a minute ago.
  statistics_.Stages(MonotonicTime(-std::chrono::minutes(1)), &seen);
  EXPECT_EQ(seen, std::chrono::seconds(6));
}

TEST_F(StatisticsTest, QueuesAreAsFullAsAllWhoTellOfThemSay) {
  const auto with_queue = [](uint64_t at, uint64_t waiting, uint64_t room) {
    v1::WorkerStats stats = WorkerAt(64 * at, at * kSecond, 0);
    stats.mutable_stages(0)->set_queue_depth(waiting);
    stats.mutable_stages(1)->set_queue_depth(waiting);
    stats.mutable_stages(1)->set_queue_capacity(room);
    stats.set_buffers_in_use(3);
    stats.set_buffers_total(4);
    return stats;
  };
  EXPECT_TRUE(statistics_.Queues(begin_, After(0)).empty());
  for (const char* name : {"w0", "w1"})
    for (const int at : {0, 2, 6})
      statistics_.NoteWorker(name, with_queue(at, name[1] == '0' ? 2 : 10, 16),
                             After(at));
  const auto queues = statistics_.Queues(begin_, After(6));
  const v1::WorkerStats told = with_queue(0, 0, 0);
  // Without a bound, the mean depth; with one, the used share.
  EXPECT_THAT(queues.at(told.stages(0).stage()),
              testing::ElementsAre(-1, 6, -1, 6));
  EXPECT_THAT(queues.at(told.stages(1).stage()),
              testing::ElementsAre(-1, 0.375, -1, 0.375));
  EXPECT_THAT(queues.at(v1::STAGE_GROUP),
              testing::ElementsAre(-1, 0.75, -1, 0.75));
  EXPECT_THAT(statistics_.Queues(After(6), After(8)).at(v1::STAGE_GROUP),
              testing::ElementsAre(0.75, -1));
  // Entries older than five minutes are forgotten.
  EXPECT_TRUE(statistics_.Queues(begin_, After(400)).empty());
}

}  // namespace
}  // namespace leat::server
