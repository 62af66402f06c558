// SPDX-License-Identifier: Apache-2.0
//
// Verdicts on jobs with known limits, requested every second from the first on.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/coordinator/shown_verdicts.h"
#include "tests/server/coordinator/simulated_training.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using ::testing::AnyOf;

constexpr double kTwoMinutes = 120;

void ExpectAlways(Limit right, const Training& training,
                  const std::string& subject = "") {
  const Said said = Show(training).Run(kTwoMinutes);
  EXPECT_THAT(said.All(), testing::UnorderedElementsAre(Limit::kUnknown, right))
      << testing::PrintToString(said.limits);
  EXPECT_LE(said.KnownFrom(), 25u);
  EXPECT_GE(said.KnownFrom(), 6u);
  EXPECT_EQ(said.subjects.back(),
            subject.empty() ? said.subjects.back() : subject);
}

TEST(Verdict, OfDecode) {
  ExpectAlways(Limit::kDecodeCpu, {.workers = {2, {.decode = 0.03}}});
}

TEST(Verdict, OfAugment) {
  ExpectAlways(Limit::kDecodeCpu,
               {.workers = {2, {.decode = 0.005, .augment = 0.04}}});
}

TEST(Verdict, OfStorageThatIsReadAhead) {
  ExpectAlways(Limit::kStorage, {.workers = {2, {.readers = 4, .read = 0.2}}});
}

TEST(Verdict, OfStorageThatDecodeThreadsRead) {
  ExpectAlways(Limit::kStorage, {.workers = {2, {.read = 0.1}}});
}

TEST(Verdict, OfTheNetwork) {
  ExpectAlways(Limit::kNetwork, {.workers = {2, {.sends_per_s = 60}}});
}

// Its server is slow for both and not fair to them, so one causes all waits.
// Steps take seconds.
TEST(Verdict, OfStorageThatIsSlowForAllAndSlowestForOne) {
  for (const double read : {1.0, 4.0}) {
    Training training{.workers = {2, {.readers = 4, .read = read}}};
    training.workers[0].read = 1.3 * read;
    const Said said = Show(training).Run(kTwoMinutes);
    EXPECT_THAT(said.All(),
                testing::UnorderedElementsAre(Limit::kUnknown, Limit::kStorage))
        << testing::PrintToString(said.limits);
  }
}

TEST(Verdict, OfANetworkThatIsSlowForAllAndSlowestForOne) {
  Training training{.workers = {2, {.sends_per_s = 60}}};
  training.workers[0].sends_per_s = 45;
  ExpectAlways(Limit::kNetwork, training);
}

TEST(Verdict, OfTheTrainer) {
  ExpectAlways(Limit::kTrainer,
               {.workers = {2, {.decode = 0.005}}, .step = 0.1});
}

TEST(Verdict, OfATooSmallWindow) {
  ExpectAlways(Limit::kWindow,
               {.workers = {2, Machine{}}, .way = 0.15, .window = 1});
}

TEST(Verdict, OfOneSlowWorker) {
  Training training{.workers = {3, {.decode = 0.01}}, .step = 0.05};
  training.workers[1].decode = 0.08;
  ExpectAlways(Limit::kStraggler, training, "w1");
}

TEST(Verdict, OfOneBadMount) {
  Training training{.workers = {3, {.readers = 8, .read = 0.01}}, .step = 0.05};
  training.workers[2].read = 3;
  ExpectAlways(Limit::kStraggler, training, "w2");
}

TEST(Verdict, OfAGpuWhoseThreadsHandItFiles) {
  ExpectAlways(Limit::kDecodeGpu, {.workers = {2, {.device = 0.02}}});
}

// The limit is storage while the cache is cold, and in the end nothing.
TEST(Verdict, OfACacheThatIsColdAtFirst) {
  const Machine cold{.readers = 4, .cold_until = 50, .cold_read = 0.2};
  const Said said = Show({.workers = {2, cold}, .step = 0.1}).Run(kTwoMinutes);
  EXPECT_THAT(said.All(),
              testing::UnorderedElementsAre(Limit::kUnknown, Limit::kStorage,
                                            Limit::kTrainer));
  EXPECT_EQ(said.limits[39], Limit::kStorage);
  EXPECT_EQ(said.limits.back(), Limit::kTrainer);
}

// Compiling a step is the trainer's time, in which workers rest.
TEST(Verdict, AfterATrainerThatCompiledItsStep) {
  const Said said = Show({.workers = {2, {.decode = 0.03}}, .first_step = 35})
                        .Run(kTwoMinutes);
  EXPECT_THAT(said.All(),
              testing::UnorderedElementsAre(Limit::kUnknown, Limit::kTrainer,
                                            Limit::kDecodeCpu));
  EXPECT_EQ(said.limits[45], Limit::kDecodeCpu);
}

// The first batches of a cold start come late, later from one worker than from
// the other. Some rows are there before a batch is complete.
TEST(Verdict, AfterAFirstBatchThatCameLate) {
  for (const double late : {0.5, 1.0, 2.0, 4.0}) {
    const Machine cold{.cold_until = 10 + late, .cold_read = late / 3};
    Training training{.workers = {2, cold}, .step = 0.04};
    training.workers[1].cold_read = late / 8;
    ExpectAlways(Limit::kTrainer, training);
  }
}

// A first epoch decodes what later ones have in the cache. When it is over, it
// limits nothing.
TEST(Verdict, AfterAFirstEpochThatWasCold) {
  for (const double cold : {6.0, 12.0, 25.0}) {
    const Machine machine{.cold_until = 10 + cold, .cold_read = 0.1};
    const Said said =
        Show({.workers = {2, machine}, .step = 0.1}).Run(kTwoMinutes);
    const auto over = static_cast<size_t>(cold);
    for (size_t at = over + 16; at < said.limits.size(); ++at)
      EXPECT_THAT(said.limits[at], AnyOf(Limit::kUnknown, Limit::kTrainer))
          << cold << " " << at;
    for (size_t at = over + 28; at < said.limits.size(); ++at)
      EXPECT_EQ(said.limits[at], Limit::kTrainer) << cold << " " << at;
  }
}

// A checkpoint on the storage, or a pause of a worker.
TEST(Verdict, AfterOneShortWait) {
  for (const double at : {10.5, 13.0, 17.0, 21.0, 30.0}) {
    Training training{.workers = {2, Machine{}}, .step = 0.04};
    training.workers[0].cold_from = at;
    training.workers[0].cold_until = at + 1.5;
    training.workers[0].cold_read = 0.2;
    const Said said = Show(training).Run(kTwoMinutes);
    EXPECT_THAT(said.All(),
                testing::UnorderedElementsAre(Limit::kUnknown, Limit::kTrainer))
        << at << testing::PrintToString(said.limits);
    EXPECT_EQ(said.limits.back(), Limit::kTrainer);
  }
}

// Waits that are many seconds apart are one limit, however few there are per
// minute, and steps without a wait are none.
TEST(Verdict, OfStepsOfManySeconds) {
  for (const double step : {12.0, 45.0}) {
    for (const double slower : {0.5, 1.3}) {
      Training training{.workers = {2, {.decode = step * slower / 4}},
                        .step = step};
      training.window = 2;
      const Said said = Show(training).Run(13 * step);
      const Limit right = slower > 1 ? Limit::kDecodeCpu : Limit::kTrainer;
      EXPECT_EQ(said.Changes(), std::vector<Limit>({Limit::kUnknown, right}))
          << step << " " << slower;
      EXPECT_LE(said.KnownFrom(), 7 * step) << step << " " << slower;
    }
  }
}

// A value that moves around a threshold must not make the verdict flicker.
TEST(Verdict, StandsWhileAFigureMovesAboutAThreshold) {
  for (const double step : {0.105, 0.11, 0.115}) {
    for (const double uneven : {0.0, 0.01}) {
      const Said said = Show({.workers = {2, {.decode = 0.03}},
                              .step = step,
                              .uneven = uneven})
                            .Run(150);
      const std::vector<Limit> changes = said.Changes();
      EXPECT_LE(changes.size(), 3u)
          << step << " " << uneven << " " << testing::PrintToString(changes);
      EXPECT_THAT(changes, testing::Each(AnyOf(Limit::kUnknown, Limit::kTrainer,
                                               Limit::kDecodeCpu)));
    }
  }
}

// The same threads work for both, and each is judged by its own rows.
TEST(Verdict, OfTwoJobsOnOnePool) {
  World world;
  const std::vector<SessionId> workers = {world.Join("a"), world.Join("b")};
  std::map<std::string, SessionId> consumers;
  for (const char* name : {"reads", "decodes"})
    consumers[name] =
        world.Open(*world.MakeJob(SpecOf(name, "/d"), workers[0]), name);
  for (uint64_t second = 0; second < 30; ++second) {
    const uint64_t ns = second * 1'000'000'000;
    auto stats = std::make_shared<v1::WorkerStats>();
    stats->set_rows_total(60 * second);
    v1::StageStats& read = *stats->add_stages();
    read.set_stage(v1::STAGE_READ);
    read.set_places(8);
    read.set_busy_ns_total(8 * ns);
    v1::StageStats& decode = *stats->add_stages();
    decode.set_stage(v1::STAGE_DECODE);
    decode.set_places(4);
    decode.set_busy_ns_total(4 * ns * 95 / 100);
    for (const auto& [name, consumer] : consumers) {
      const bool reads = name == "reads";
      v1::JobRows& job = *stats->add_job_rows();
      job.set_job(name);
      job.set_rows_total((reads ? 10 : 50) * second);
      (reads ? job.set_input_ns_total(ns * 9 / 10)
             : job.set_thread_ns_total(ns * 9 / 10));
      job.set_decode_ns_total(4 * ns * (reads ? 10 : 85) / 100);
      job.set_fetch_ns_total(ns * (reads ? 7 : 1));
      auto trainer = std::make_shared<v1::ConsumerStats>();
      trainer->set_rows_total(16 * second);
      v1::StageStats& train = *trainer->add_stages();
      train.set_stage(v1::STAGE_TRAIN);
      train.set_places(1);
      train.set_items_total(2 * second);
      train.set_input_ns_total(ns / 2);
      EXPECT_TRUE(
          world->ReportConsumer(consumer, {.stats = trainer}, world.now())
              .ok());
    }
    for (const SessionId worker : workers)
      EXPECT_TRUE(world->Heartbeat(worker, {0, stats}, {}, world.now()).ok());
    world.Advance(seconds(1));
  }
  const MonotonicTime from = world.now().mono - std::chrono::minutes(1);
  WorkerSlots slots = world->WorkersSince(from);
  const auto of = [&](const char* job) {
    return world->BottleneckOf(job, &slots, from, world.now())->found;
  };
  EXPECT_EQ(of("decodes").limit, Limit::kDecodeCpu);
  const Bottleneck found = of("reads");
  EXPECT_EQ(found.limit, Limit::kStorage);
  EXPECT_EQ(found.summary,
            "its next rows wait for records, and the threads work for other "
            "jobs");
  EXPECT_NEAR(found.figures[1].value, 90, 1);
  EXPECT_NEAR(found.figures[2].value, 7, 0.1);
}

TEST(Verdict, OfAWorkerThatBeganAnew) {
  for (const size_t workers : {1u, 2u}) {
    const Said said =
        Show({.workers = {workers, {.decode = 0.03}}, .restart_at = 70})
            .Run(kTwoMinutes);
    EXPECT_THAT(said.All(), testing::UnorderedElementsAre(Limit::kUnknown,
                                                          Limit::kDecodeCpu))
        << testing::PrintToString(said.limits);
  }
}

// They would count as threads that have time.
TEST(Verdict, DoesNotCountWorkersThatNothingIsAskedOf) {
  World world;
  std::vector<SessionId> sessions;
  for (const char* name : {"a", "b", "c", "d"})
    sessions.push_back(world.Join(name));
  const auto job = world.MakeJob(SpecOf("j", "/d"), sessions[0]);
  const SessionId consumer = world.Open(*job, "c");
  SimulatedWorker works(Machine{.decode = 0.03}), rests(Machine{});
  SimulatedTrainer trainer({.workers = {1, Machine{}}});
  for (int second = 0; second < 30; ++second) {
    for (double now = second; now < second + 1; now += kTickS) {
      works.Tick(trainer.Asked(), now);
      rests.Tick(0, now);
      trainer.Tick({works.sent()}, now);
    }
    world.Advance(seconds(1));
    for (const SessionId session : sessions)
      (void)world->Heartbeat(
          session,
          {0, std::make_shared<const v1::WorkerStats>(
                  (session == sessions[0] ? works : rests).Report())},
          {}, world.now());
    (void)world->ReportConsumer(
        consumer,
        {.stats = std::make_shared<const v1::ConsumerStats>(trainer.Report())},
        world.now());
  }
  const MonotonicTime from = world.now().mono - std::chrono::minutes(1);
  WorkerSlots workers = world->WorkersSince(from);
  const auto view = world->BottleneckOf("j", &workers, from, world.now());
  EXPECT_EQ(view->found.limit, Limit::kDecodeCpu);
  EXPECT_EQ(view->workers, 1u);
}

// No worker has failed: either none ever came, or they are on their way.
TEST(Verdict, BeforeTheFirstBatch) {
  World world;
  const SessionId worker = world.Join("a");
  const auto job = world.MakeJob(SpecOf("j", "/d"), worker);
  const auto verdict = [&] {
    const MonotonicTime from = world.now().mono - std::chrono::minutes(1);
    WorkerSlots workers = world->WorkersSince(from);
    return *world->BottleneckOf("j", &workers, from, world.now());
  };
  EXPECT_EQ(verdict().found.summary, "no consumer has pulled batches of it");
  world.Open(*job, "c");
  world.Advance(seconds(2));
  ASSERT_TRUE(world.Beat(worker).ok());
  EXPECT_NE(verdict().found.advice.find("leat top workers"), std::string::npos);
  EXPECT_EQ(verdict().found.summary, "no batch of it has come yet");
  EXPECT_EQ(verdict().seen, seconds(2));
  world->CloseWorker(worker, /*left=*/true, world.now());
  EXPECT_EQ(verdict().found.limit, Limit::kWorkers);
}

// Whatever happened in the last minute.
TEST(Verdict, AfterTheLastWorkerHasGone) {
  World world;
  const SessionId worker = world.Join("a");
  const auto job = world.MakeJob(SpecOf("j", "/d"), worker);
  const SessionId consumer = world.Open(*job, "c");
  const auto verdict_at = [&](int64_t second, double waited_s) {
    v1::ConsumerStats stats;
    stats.set_rows_total(8 * (second + 1));
    v1::StageStats& train = *stats.add_stages();
    train.set_stage(v1::STAGE_TRAIN);
    train.set_places(1);
    train.set_items_total(second + 1);
    train.set_input_ns_total(static_cast<uint64_t>(waited_s * 1e9));
    EXPECT_TRUE(world
                    ->ReportConsumer(
                        consumer,
                        {.stats = std::make_shared<v1::ConsumerStats>(stats)},
                        world.now())
                    .ok());
    const MonotonicTime from = world.now().mono - std::chrono::minutes(1);
    WorkerSlots workers = world->WorkersSince(from);
    return world->BottleneckOf("j", &workers, from, world.now())->found.limit;
  };
  EXPECT_EQ(verdict_at(0, 0), Limit::kUnknown);
  for (int64_t second = 2; second < 30; second += 2) {
    world.Advance(seconds(2));
    EXPECT_TRUE(world.Beat(worker).ok());
    EXPECT_EQ(verdict_at(second, 0),
              second < 20 ? Limit::kUnknown : Limit::kTrainer);
  }
  world->CloseWorker(worker, /*left=*/true, world.now());
  world.Advance(seconds(2));
  EXPECT_EQ(verdict_at(30, 0), Limit::kTrainer);  // from its window
  world.Advance(seconds(2));
  EXPECT_EQ(verdict_at(30, 0.5), Limit::kWorkers);
  // Also for one that has just begun.
  World anew;
  const SessionId last = anew.Join("a");
  const auto short_job = anew.MakeJob(SpecOf("j", "/d"), last);
  const SessionId begun = anew.Open(*short_job, "c");
  v1::ConsumerStats first;
  first.set_rows_total(8);
  first.add_stages()->set_stage(v1::STAGE_TRAIN);
  first.mutable_stages(0)->set_items_total(1);
  EXPECT_TRUE(anew->ReportConsumer(
                      begun,
                      {.stats = std::make_shared<v1::ConsumerStats>(first)},
                      anew.now())
                  .ok());
  anew->CloseWorker(last, /*left=*/true, anew.now());
  WorkerSlots none;
  EXPECT_EQ(
      anew->BottleneckOf("j", &none, anew.now().mono - seconds(60), anew.now())
          ->found.limit,
      Limit::kWorkers);
}

}  // namespace
}  // namespace leat::server
