// SPDX-License-Identifier: Apache-2.0
#include "server/observe/statistics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

v1::StageStats& Add(v1::Stage stage, uint32_t places, uint64_t busy_ns,
                    google::protobuf::RepeatedPtrField<v1::StageStats>* to) {
  v1::StageStats& stats = *to->Add();
  stats.set_stage(stage);
  stats.set_places(places);
  stats.set_busy_ns_total(busy_ns);
  return stats;
}

// A worker of 8 threads that has decoded, and waited for records, this long.
v1::WorkerStats WorkerAt(uint64_t rows, uint64_t decoding_ns,
                         uint64_t input_ns) {
  v1::WorkerStats stats;
  stats.set_rows_total(rows);
  Add(v1::STAGE_READ, 8, 0, stats.mutable_stages());
  Add(v1::STAGE_DECODE, 8, decoding_ns, stats.mutable_stages())
      .set_input_ns_total(input_ns);
  Add(v1::STAGE_SEND, 2, 0, stats.mutable_stages());
  return stats;
}

v1::ConsumerStats ConsumerAt(uint64_t rows, uint64_t waited_ns,
                             const std::string& worker = "") {
  v1::ConsumerStats stats;
  stats.set_rows_total(rows);
  v1::StageStats& train = Add(v1::STAGE_TRAIN, 1, 0, stats.mutable_stages());
  train.set_items_total(rows > 0 ? 1 : 0);
  train.set_input_ns_total(waited_ns);
  train.set_queue_depth(1);
  train.set_queue_capacity(4);
  if (worker.empty()) return stats;
  stats.add_waited_for()->set_worker(worker);
  stats.mutable_waited_for(0)->set_waited_ns_total(waited_ns);
  return stats;
}

class StatisticsTest : public testing::Test {
 protected:
  MonotonicTime After(int64_t seconds) const {
    return begin_ + std::chrono::seconds(seconds);
  }

  // Returns the mean of the worker's statistics since then.
  std::optional<WorkerStatistics> Of(const std::string& worker,
                                     MonotonicTime since) const {
    WorkerSlots slots;
    statistics_.AddWorker(worker, since, &slots);
    WaitsBySlot all;
    for (int64_t slot = 0; slot < 10; ++slot)
      all[History::SlotOf(since) + slot] = 0;
    return slots.Mean(all, {});
  }

  const MonotonicTime begin_{std::chrono::hours(7)};
  Statistics statistics_{History::Config()};
};

TEST_F(StatisticsTest, AreTheDifferencesOfReports) {
  statistics_.NoteWorker("w0", WorkerAt(1000, 50 * kSecond, 7), After(0));
  EXPECT_FALSE(Of("w0", begin_).has_value());
  statistics_.NoteWorker("w0", WorkerAt(1100, 50 * kSecond, 7), After(1));
  EXPECT_FALSE(Of("w0", begin_).has_value());
  statistics_.NoteWorker("w0", WorkerAt(1400, 58 * kSecond, 7 + 4 * kSecond),
                         After(2));
  statistics_.NoteWorker("w0", WorkerAt(2400, 74 * kSecond, 7 + 4 * kSecond),
                         After(4));
  const std::optional<WorkerStatistics> both = Of("w0", begin_);
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->threads, 8);
  EXPECT_NEAR(both->rows_per_s, 350, 1);
  EXPECT_NEAR(both->decoding, 0.75, 0.01);
  EXPECT_NEAR(both->for_input, 0.125, 0.01);
  EXPECT_LT(both->device, 0);
  EXPECT_NEAR(Of("w0", After(2))->decoding, 1, 0.01);
}

TEST_F(StatisticsTest, AProcessThatBeganAnewIsComparedWithItself) {
  statistics_.NoteWorker("w0", WorkerAt(100'000, 900 * kSecond, 0), After(0));
  statistics_.NoteWorker("w0", WorkerAt(10, kSecond, 0), After(2));
  EXPECT_FALSE(Of("w0", begin_).has_value());
  statistics_.NoteWorker("w0", WorkerAt(30, 9 * kSecond, 0), After(4));
  EXPECT_NEAR(Of("w0", begin_)->decoding, 0.5, 0.01);
}

TEST_F(StatisticsTest, HostileReportsStayInTheirBounds) {
  const uint64_t most = ~uint64_t{0};
  statistics_.NoteWorker("w0", WorkerAt(0, 0, most), After(0));
  statistics_.NoteWorker("w0", WorkerAt(most, most, 0), After(2));
  const std::optional<WorkerStatistics> found = Of("w0", begin_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->decoding, 1);
  EXPECT_EQ(found->for_input, 0);
  for (int i = 0; i < 70'000; ++i)
    statistics_.NoteConsumer("c" + std::to_string(i), ConsumerAt(0, 0),
                             After(2));
  for (int i = 0; i < 70'000; ++i)
    statistics_.NoteConsumer("c" + std::to_string(i), ConsumerAt(9, 9),
                             After(4));
  EXPECT_LE(statistics_.bytes(), History::Config().max_bytes);
}

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

TEST_F(StatisticsTest, MomentsOfAConsumerHaveTheirWaits) {
  v1::ConsumerStats stats = ConsumerAt(0, 0);
  statistics_.NoteConsumer("c", stats, After(0));
  stats = ConsumerAt(100, kSecond);
  stats.mutable_wait()->set_p50_ms(3);
  stats.mutable_wait()->set_p95_ms(250);
  statistics_.NoteConsumer("c", stats, After(2));
  std::vector<ConsumerMoment> moments;
  statistics_.ForEachOfConsumer("c", begin_, [&](const ConsumerMoment& moment) {
    moments.push_back(moment);
  });
  ASSERT_EQ(moments.size(), 1u);
  EXPECT_EQ(moments[0].slot, History::SlotOf(begin_));
  EXPECT_NEAR(moments[0].waiting, 0.5, 0.01);
  EXPECT_NEAR(moments[0].rows_per_s, 50, 1);
  EXPECT_NEAR(moments[0].wait_p50_ms, 3, 0.3);
  EXPECT_NEAR(moments[0].wait_p95_ms, 250, 25);
}

// The wait for the first step is the start of a job, also after some of its
// rows have arrived, and earlier work of a worker belongs to another job.
TEST_F(StatisticsTest, OfAVerdictBeginWithTheFirstStepOfASession) {
  statistics_.NoteConsumer("c", ConsumerAt(0, 0), After(0));
  v1::ConsumerStats rows_only = ConsumerAt(8, 9 * kSecond);
  rows_only.mutable_stages(0)->set_items_total(0);
  statistics_.NoteConsumer("c", rows_only, After(9));
  EXPECT_FALSE(statistics_.PastOf("c", begin_).has_value());
  EXPECT_NEAR(statistics_.OfConsumer("c", begin_)->waiting, 1, 0.01);
  statistics_.NoteConsumer("c", ConsumerAt(64, 10 * kSecond), After(10));
  EXPECT_TRUE(statistics_.PastOf("c", begin_)->waits.empty());
  EXPECT_FALSE(statistics_.PastOf("c", begin_)->enough);
  for (int at = 12; at <= 30; at += 2) {
    EXPECT_FALSE(statistics_.PastOf("c", begin_)->enough) << at;
    v1::ConsumerStats stats = ConsumerAt(64 + at, 10 * kSecond);
    stats.mutable_stages(0)->set_items_total(at);
    statistics_.NoteConsumer("c", stats, After(at));
  }
  EXPECT_TRUE(statistics_.PastOf("c", begin_)->enough);
  EXPECT_EQ(statistics_.PastOf("c", begin_)->begin, After(10));
  EXPECT_EQ(statistics_.PastOf("c", begin_)->mean.waiting, 0);
  // The recent part is enough, too.
  EXPECT_TRUE(statistics_.PastOf("c", After(26))->enough);
  EXPECT_EQ(statistics_.PastOf("c", After(26))->begin, After(26));
  // A session with the same name, as of a container's only process.
  statistics_.BeginConsumer("c");
  EXPECT_FALSE(statistics_.PastOf("c", begin_).has_value());
  statistics_.NoteConsumer("c", ConsumerAt(4000, 0), After(32));
  EXPECT_FALSE(statistics_.PastOf("c", begin_)->enough);
  // A process that counts from zero, whose stream did not end.
  statistics_.NoteConsumer("c", ConsumerAt(0, 0), After(34));
  EXPECT_FALSE(statistics_.PastOf("c", begin_).has_value());

  statistics_.NoteWorker("w", WorkerAt(0, 0, 0), After(0));
  statistics_.NoteWorker("w", WorkerAt(64, 16 * kSecond, 0), After(2));
  statistics_.BeginWorker("w");
  EXPECT_FALSE(Of("w", begin_).has_value());
  statistics_.NoteWorker("w", WorkerAt(0, 0, 0), After(4));
  // No row was requested from it, and then all.
  statistics_.NoteWorker("w", WorkerAt(0, 0, 0), After(6));
  EXPECT_FALSE(Of("w", begin_).has_value());
  statistics_.NoteWorker("w", WorkerAt(64, 8 * kSecond, 0), After(8));
  EXPECT_NEAR(Of("w", begin_)->decoding, 0.5, 0.01);
}

TEST_F(StatisticsTest, FiftyStepsBeyondAWindowAreEnough) {
  const auto at_step = [](uint64_t steps) {
    v1::ConsumerStats stats = ConsumerAt(1 + 8 * steps, 0);
    stats.mutable_stages(0)->set_items_total(steps);  // of a window of 4
    return stats;
  };
  statistics_.NoteConsumer("c", at_step(1), After(0));
  statistics_.NoteConsumer("c", at_step(60), After(2));
  statistics_.NoteConsumer("c", at_step(70), After(4));
  EXPECT_FALSE(statistics_.PastOf("c", begin_)->enough);  // too few samples
  statistics_.NoteConsumer("c", at_step(80), After(6));
  EXPECT_TRUE(statistics_.PastOf("c", begin_)->enough);
  statistics_.NoteConsumer("d", at_step(1), After(0));
  for (const int at : {2, 4, 6})
    statistics_.NoteConsumer("d", at_step(53), After(at));
  EXPECT_FALSE(statistics_.PastOf("d", begin_)->enough);
}

TEST(WorkerSlots, JudgeByTheSlotsInWhichTheTrainerWaited) {
  WorkerSlots slots, own;
  const auto did = [](double decoding, double device) {
    WorkerStatistics worker;
    worker.threads = 4;
    worker.rows_per_s = 100;
    worker.decoding = decoding;
    worker.device = device;
    return worker;
  };
  for (const int slot : {1, 2}) {
    slots.Add(slot, did(slot == 1 ? 0.1 : 0.9, -1));
    slots.Add(slot, did(slot == 1 ? 0.1 : 0.7, 0.4));
    own.Add(slot, did(slot == 1 ? 0.1 : 0.7, 0.4));
  }
  EXPECT_NEAR(slots.Mean({{1, 0}, {2, 0.5}}, {})->decoding, 0.8, 0.001);
  EXPECT_NEAR(slots.Mean({{1, 0}, {2, 0}}, {})->decoding, 0.45, 0.001);
  EXPECT_NEAR(slots.Mean({{1, 0.75}, {2, 0.25}}, {})->decoding, 0.275, 0.001);
  const WorkerStatistics others = *slots.Mean({{2, 1}}, own);
  EXPECT_NEAR(others.decoding, 0.9, 0.001);
  EXPECT_EQ(others.workers, 1);
  EXPECT_EQ(others.threads, 4);
  EXPECT_EQ(others.rows_per_s, 100);
  EXPECT_LT(others.device, 0);
  EXPECT_NEAR(slots.Mean({{2, 1}}, {})->device, 0.4, 0.001);
  EXPECT_FALSE(own.Mean({{2, 1}}, own).has_value());
  EXPECT_FALSE(slots.Mean({{9, 1}}, {}).has_value());
}

TEST_F(StatisticsTest, WhoIsWaitedForMostIsNamed) {
  statistics_.NoteWorker("slow", WorkerAt(0, 0, 0), After(0));
  statistics_.NoteWorker("slow", WorkerAt(9, 0, 0), After(2));
  statistics_.NoteConsumer("c", ConsumerAt(0, 0, "slow"), After(2));
  statistics_.NoteConsumer("c", ConsumerAt(64, kSecond, "slow"), After(4));
  statistics_.NoteConsumer("c", ConsumerAt(128, 3 * kSecond, "slow"), After(6));
  const std::optional<ConsumerStatistics> found =
      statistics_.OfConsumer("c", begin_);
  ASSERT_TRUE(found.has_value());
  EXPECT_NEAR(found->waiting, 0.75, 0.01);
  EXPECT_NEAR(found->ready, 0.25, 0.01);
  EXPECT_NEAR(found->rows_per_s, 32, 0.5);
  EXPECT_EQ(found->waited_for, "slow");
  EXPECT_NEAR(found->waited_for_share, 1, 0.01);
}

TEST_F(StatisticsTest, MakeTheCoordinatorsVerdict) {
  World world;
  const SessionId worker = world.Join("w0");
  const auto job = world.MakeJob(SpecOf("j", "/d"), worker);
  ASSERT_NE(job, nullptr);
  const SessionId consumer = world.Open(*job, "c");
  const auto verdict = [&world] {
    const MonotonicTime from = world.now().mono - std::chrono::minutes(1);
    WorkerSlots workers = world->WorkersSince(from);
    const auto view = world->BottleneckOf("j", &workers, from, world.now());
    EXPECT_LE(view->seen, std::chrono::minutes(1));
    return view.ok() ? view->found.limit : Limit::kNetwork;
  };
  EXPECT_EQ(verdict(), Limit::kUnknown);
  const auto report = [&](uint64_t at, uint64_t waited) {
    const v1::WorkerStats worker_stats =
        WorkerAt(100 * at, 8 * at * kSecond, 0);
    const v1::ConsumerStats consumer_stats =
        ConsumerAt(100 * at, waited * kSecond, "w0");
    EXPECT_EQ(world->Heartbeat(
                  worker,
                  {100, std::make_shared<const v1::WorkerStats>(worker_stats)},
                  {}, world.now()),
              absl::OkStatus());
    EXPECT_EQ(world->ReportConsumer(
                  consumer,
                  {.stats = std::make_shared<const v1::ConsumerStats>(
                       consumer_stats)},
                  world.now()),
              absl::OkStatus());
  };
  for (uint64_t at = 0; at <= 22; at += 2) {
    if (at > 0) world.Advance(seconds(2));
    EXPECT_EQ(verdict(), Limit::kUnknown) << at;
    report(at, at / 2);
  }
  EXPECT_EQ(verdict(), Limit::kDecodeCpu);
  WorkerSlots nobody;
  EXPECT_EQ(world->BottleneckOf("k", &nobody, world.now().mono, world.now())
                .status()
                .code(),
            absl::StatusCode::kNotFound);
  // A consumer that has gone does not count.
  world->CloseConsumer(consumer, world.now());
  EXPECT_EQ(verdict(), Limit::kUnknown);
}

TEST_F(StatisticsTest, AWorkerThatTheCoordinatorDoesNotKnowIsNotNamed) {
  statistics_.NoteConsumer("c", ConsumerAt(0, 0, "made up"), After(2));
  statistics_.NoteConsumer("c", ConsumerAt(64, kSecond, "made up"), After(4));
  const std::optional<ConsumerStatistics> found =
      statistics_.OfConsumer("c", begin_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->waited_for, "");
}

}  // namespace
}  // namespace leat::server
