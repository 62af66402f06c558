// SPDX-License-Identifier: Apache-2.0
#include "server/observe/statistics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/observe/statistics_fixture.h"

namespace leat::server {
namespace {

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

TEST_F(StatisticsTest, RequestsToStorageThatRepeatAFailedOneAreAShareOfAll) {
  v1::WorkerStats stats = WorkerAt(100, 0, 0);
  statistics_.NoteWorker("w0", stats, After(0));
  stats.set_storage_requests_total(200);
  stats.set_storage_retries_total(50);
  statistics_.NoteWorker("w0", stats, After(2));
  EXPECT_NEAR(Of("w0", begin_)->repeated, 0.25, 0.01);
  stats.set_rows_total(200);
  statistics_.NoteWorker("w0", stats, After(4));
  ASSERT_TRUE(Of("w0", After(2)).has_value());
  EXPECT_EQ(Of("w0", After(2))->repeated, 0);
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

// While the trainer waits, answers of "slow" take 4 seconds, 3 of them in
// queues, and those of two other workers 6 and 1. Then it does not wait.
TEST_F(StatisticsTest,
       AnswersThatAreQueuedOnTheNetworkCountWhileTheTrainerWaits) {
  statistics_.NoteWorker("slow", WorkerAt(0, 0, 0), After(0));
  statistics_.NoteWorker("slow", WorkerAt(9, 0, 0), After(2));
  const auto report = [&](uint64_t waited, uint64_t answers, uint64_t queued,
                          uint64_t its_answers, uint64_t its_queued,
                          int64_t at) {
    v1::ConsumerStats stats =
        ConsumerAt(static_cast<uint64_t>(at), waited * kSecond, "slow");
    AddStage(v1::STAGE_RECEIVE, 3, 0, stats.mutable_stages());
    stats.set_answer_ns_total(answers * kSecond);
    stats.set_queued_ns_total(queued * kSecond);
    stats.mutable_waited_for(0)->set_answer_ns_total(its_answers * kSecond);
    stats.mutable_waited_for(0)->set_queued_ns_total(its_queued * kSecond);
    statistics_.NoteConsumer("c", stats, After(at));
  };
  report(0, 100, 100, 50, 50, 2);
  report(2, 110, 104, 54, 53, 4);
  report(2, 120, 104, 58, 53, 6);
  const std::optional<ConsumerStatistics> found =
      statistics_.OfConsumer("c", begin_);
  ASSERT_TRUE(found.has_value());
  EXPECT_NEAR(found->queued, 0.4, 0.01);
  EXPECT_NEAR(found->others_queued, 1.0 / 2 / 2, 0.01);
}

// In the first seconds the script's source is waited for, in the next a worker,
// and then a worker that the coordinator does not know.
TEST_F(StatisticsTest, TheScriptsSourceIsWaitedForLikeAWorker) {
  statistics_.NoteWorker("w0", WorkerAt(0, 0, 0), After(0));
  statistics_.NoteWorker("w0", WorkerAt(9, 0, 0), After(2));
  const auto report = [&](uint64_t waited_ms, uint64_t source_ms,
                          const std::string& worker, uint64_t worker_ms,
                          int64_t at) {
    v1::ConsumerStats stats =
        ConsumerAt(static_cast<uint64_t>(at), waited_ms * 1'000'000, worker);
    stats.mutable_waited_for(0)->set_waited_ns_total(worker_ms * 1'000'000);
    stats.set_source_ns_total(source_ms * 1'000'000);
    statistics_.NoteConsumer("c", stats, After(at));
  };
  report(0, 0, "w0", 0, 2);
  report(1000, 900, "w0", 100, 4);
  EXPECT_NEAR(statistics_.OfConsumer("c", begin_)->for_source, 0.9, 0.01);
  EXPECT_EQ(statistics_.OfConsumer("c", begin_)->waited_for, "");
  report(2000, 900, "w0", 1100, 6);
  report(3000, 900, "made up", 1000, 8);
  const std::optional<ConsumerStatistics> found =
      statistics_.OfConsumer("c", begin_);
  EXPECT_NEAR(found->for_source, 0.3, 0.01);
  EXPECT_EQ(found->waited_for, "w0");
  EXPECT_NEAR(found->waited_for_share, 1.0 / 3, 0.01);
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
