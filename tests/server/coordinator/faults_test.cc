// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/threads.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using absl::StatusCode;

TEST(Coordinator, StallsAndBadSamplesBecomeFindings) {
  World world;
  const SessionId a = world.Join("a");
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  EXPECT_TRUE(world->Findings(world.now()).empty());
  const SessionId consumer = world.Open(*job, "c");
  ConsumerReport stats;
  stats.epoch = 1;
  stats.step = 5;
  stats.stall_fraction = 0.9;
  ASSERT_TRUE(world->ReportConsumer(consumer, stats, world.now()).ok());
  EXPECT_FALSE(world.Found("CONSUMER_STALLED")) << "not after one report";
  for (int i = 0; i < 11; ++i) {
    world.Advance(seconds(1));
    ASSERT_TRUE(world.Beat(a).ok());
    ASSERT_TRUE(world->ReportConsumer(consumer, stats, world.now()).ok());
  }
  EXPECT_TRUE(world.Found("CONSUMER_STALLED"));
  ASSERT_TRUE(
      world
          ->Heartbeat(
              a, {},
              {{{"j", {BadSampleOf(5, "cat/5.jpg", "truncated", 2)}}}, {}},
              world.now())
          .ok());
  ASSERT_TRUE(
      world
          ->Heartbeat(
              a, {},
              {{{"j", {BadSampleOf(5, "cat/5.jpg", "truncated", 1)}}}, {}},
              world.now())
          .ok());
  EXPECT_TRUE(world.Found("BAD_SAMPLES"));
  const JobView view = world->Jobs()[0];
  EXPECT_EQ(view.bad_samples_total, 3u);
  EXPECT_EQ(view.bad_samples.size(), 1u);
  EXPECT_EQ(view.epoch, 1u);
  EXPECT_EQ(view.step, 5u);
  EXPECT_EQ(view.consumers, 1u);
}

// The coordinator notices that a stream has broken after its keepalive, and
// the consumer opens the next one at once.
TEST(Coordinator, AConsumerThatConnectedAgainCountsOnce) {
  World world;
  const SessionId a = world.Join("a");
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  const SessionId broken = world.Open(*job, "c");
  ConsumerReport stats;
  stats.step = 5;
  stats.rows_per_s = 100;
  stats.stall_fraction = 0.9;
  ASSERT_TRUE(world->ReportConsumer(broken, stats, world.now()).ok());
  const SessionId newest = world.Open(*job, "c");
  stats.step = 9;
  stats.stall_fraction = 0;
  for (int i = 0; i < 11; ++i) {
    world.Advance(seconds(1));
    ASSERT_TRUE(world.Beat(a).ok());
    ASSERT_TRUE(world->ReportConsumer(newest, stats, world.now()).ok());
  }
  EXPECT_FALSE(world.Found("CONSUMER_STALLED"));
  const JobView view = world->Jobs()[0];
  EXPECT_EQ(view.consumers, 1u);
  EXPECT_EQ(view.rows_per_s, 100);
  EXPECT_EQ(view.stall_fraction, 0);
  EXPECT_EQ(view.step, 9u);
  EXPECT_EQ(world->Consumers({}).size(), 1u);
  World::Box again = world.Create(SpecOf("j", "/d"));
  ASSERT_EQ(Code(again), absl::StatusCode::kOk);
  EXPECT_EQ((**again)->consumers, 1u);
}

using Unreached = std::vector<UnreachedWorker>;

TEST(Coordinator, TellsForAMinuteWhomAConsumerThatHasEndedDidNotReach) {
  World world;
  const SessionId a = world.Join("a");
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  const SessionId consumer = world.Open(*job, "c");
  ConsumerReport stats;
  stats.unreached = Unreached{{"a", "it wants a certificate"}};
  ASSERT_TRUE(world->ReportConsumer(consumer, stats, world.now()).ok());
  stats.unreached.reset();  // unchanged
  ASSERT_TRUE(world->ReportConsumer(consumer, stats, world.now()).ok());
  EXPECT_TRUE(world.Found("WORKER_UNREACHED"));
  world->CloseConsumer(consumer, world.now());
  EXPECT_TRUE(world.Found("WORKER_UNREACHED"));
  for (int i = 0; i < 61; ++i) {
    world.Advance(seconds(1));
    ASSERT_TRUE(world.Beat(a).ok());
  }
  EXPECT_FALSE(world.Found("WORKER_UNREACHED"));
  const SessionId next = world.Open(*job, "d");
  stats.unreached = Unreached{{"a", "it wants a certificate"}};
  ASSERT_TRUE(world->ReportConsumer(next, stats, world.now()).ok());
  EXPECT_TRUE(world.Found("WORKER_UNREACHED"));
  stats.unreached->clear();  // it reaches all of them
  ASSERT_TRUE(world->ReportConsumer(next, stats, world.now()).ok());
  EXPECT_FALSE(world.Found("WORKER_UNREACHED"));
}

TEST(Coordinator, BadRegistrationsAreRefused) {
  World world;
  for (const char* name : {"", "two words", "\x01", "\xff"})
    EXPECT_EQ(world->RegisterWorker(WorkerOf(name), world.now(), [] {})
                  .status()
                  .code(),
              StatusCode::kInvalidArgument);
  EXPECT_EQ(world->RegisterWorker(WorkerOf("a", 0), world.now(), [] {})
                .status()
                .code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(world.Beat(12345).code(), StatusCode::kNotFound);
}

TEST(Coordinator, ShutdownAnswersEverybody) {
  World world;
  const SessionId a = world.Join("a");
  World::Box box = world.Create(SpecOf("j", "/d"));
  world->Shutdown();
  EXPECT_EQ(Code(box), StatusCode::kUnavailable);
  EXPECT_EQ(world->NextForWorker(a).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(Code(world.Create(SpecOf("k", "/d"))), StatusCode::kUnavailable);
  EXPECT_EQ(world.DeleteJob("j").code(), StatusCode::kUnavailable);
}

// A store whose disk is full for a while.
class FullStore : public MemoryStore {
 public:
  bool full = false;
  absl::Status Append(const Event& event) override {
    if (full) return ResourceExhausted("no room");
    return MemoryStore::Append(event);
  }
};

TEST(Coordinator, AFullDiskRefusesChangesAndTheServiceGoesOn) {
  auto store = std::make_shared<FullStore>();
  World world({}, store);
  const SessionId a = world.Join("a");
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  store->full = true;
  World::Box refused = world.Create(SpecOf("k", "/d"));
  EXPECT_EQ(Code(refused), StatusCode::kResourceExhausted);
  EXPECT_EQ(world.Drain("a").code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(world.Found("STATE_FULL"));
  EXPECT_NE(*world->NextForConsumer(world.Open(*job, "c")), nullptr);
  store->full = false;
  EXPECT_EQ(Code(world.Create(SpecOf("k", "/d"))), StatusCode::kOk);
  EXPECT_FALSE(world.Found("STATE_FULL"));
}

// A store whose fsync fails once.
class FailingStore : public MemoryStore {
 public:
  std::atomic<bool> fails = false;
  absl::Status Append(const Event& event) override {
    if (fails) return Internal("fsync failed");
    return MemoryStore::Append(event);
  }
};

TEST(Coordinator, AStoreThatHasFailedIsSaidAndItsChangesMayBeTriedElsewhere) {
  auto store = std::make_shared<FailingStore>();
  World world({}, store);
  const SessionId a = world.Join("a");
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  EXPECT_TRUE(world->StoreFailure().ok());
  store->fails = true;
  World::Box refused = world.Create(SpecOf("k", "/d"));
  EXPECT_EQ(Code(refused), StatusCode::kUnavailable);
  EXPECT_TRUE(absl::IsInternal(world->StoreFailure()));
  EXPECT_TRUE(world.Found("STATE_FAILED"));
  // Existing state is served until the process ends.
  EXPECT_NE(*world->NextForConsumer(world.Open(*job, "c")), nullptr);
}

TEST(Driver, TellsOnceThatTheStoreHasFailed) {
  FailingStore store;
  store.fails = true;
  Mutex mu;
  CondVar told;
  std::vector<absl::Status> failures;
  Driver driver(&Clock::Real(), [&](const absl::Status& why) {
    MutexLock lock(&mu);
    failures.push_back(why);
    told.NotifyAll();
  });
  Coordinator coordinator({}, &store, 7, [&] { driver.Wake(); });
  ASSERT_TRUE(coordinator.Recover().ok());
  ASSERT_TRUE(driver.Start(&coordinator).ok());
  ASSERT_TRUE(
      coordinator.RegisterWorker(WorkerOf("a"), Now::Of(Clock::Real()), [] {})
          .ok());
  int answers = 0;
  for (const bool drain : {true, true})
    coordinator.DrainWorker("a", drain, Now::Of(Clock::Real()),
                            [&](const absl::Status& status) {
                              EXPECT_TRUE(absl::IsUnavailable(status));
                              MutexLock lock(&mu);
                              ++answers;
                              told.NotifyAll();
                            });
  {
    MutexLock lock(&mu);
    while (answers < 2 || failures.empty()) told.Wait(&mu);
  }
  driver.Stop();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_TRUE(absl::IsInternal(failures[0]));
}

// Claims to be durable, but is not.
class OldStore : public MemoryStore {
 public:
  bool durable() const override { return true; }
};

TEST(Coordinator, AStateOlderThanWhatAWorkerSawIsReported) {
  World world({}, std::make_shared<OldStore>());
  WorkerRegistration worker = WorkerOf("a");
  worker.highest_sequence_seen = 9;
  world.Join(worker);
  EXPECT_TRUE(world.Found("STATE_REGRESSED"));
}

TEST(Coordinator, WhatManyThreadsWereToldIsSoAndSurvivesARestart) {
  MemoryStore store;
  CoordinatorConfig config;
  Coordinator coordinator(config, &store, 7, [] {});
  ASSERT_TRUE(coordinator.Recover().ok());
  const Clock& clock = Clock::Real();
  std::atomic<bool> stop = false;
  std::thread driver([&] {
    while (!stop) {
      coordinator.Tick(Now::Of(clock));
      coordinator.RunTransaction(Now::Of(clock));
      coordinator.RunTables();
      coordinator.RunWakes();
    }
  });
  Mutex mu;
  std::map<std::string, Digest> told;  // jobs that a caller received
  int answers = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) {
        const Now now = Now::Of(clock);
        const SessionId session = *coordinator.RegisterWorker(
            WorkerOf(fmt::format("w{}", t)), now, [] {});
        std::atomic<bool> answered = false;
        const std::string name = fmt::format("job{}", t);
        coordinator.CreateJob(
            SpecOf(name, fmt::format("/d{}", i % 3)), now.mono + seconds(1),
            now, [&](const absl::StatusOr<CreatedJob>& created) {
              MutexLock lock(&mu);
              ++answers;
              if (created.ok()) told[name] = created->info->plan_hash;
              EXPECT_TRUE(created.ok() ||
                          absl::IsAlreadyExists(created.status()) ||
                          absl::IsUnavailable(created.status()) ||
                          absl::IsDeadlineExceeded(created.status()))
                  << created.status();
              answered = true;
            });
        while (!answered) {
          auto next = coordinator.NextForWorker(session);
          if (next.ok() && next->has_value()) {
            if (const auto* asked = std::get_if<IndexDirective>(&**next)) {
              EXPECT_TRUE(
                  coordinator.PutBlock(BlockOf("x"), "x", Now::Of(clock)).ok());
              coordinator.FinishUpload(HeaderFor(*asked, "x"), Now::Of(clock),
                                       [](const absl::Status&) {});
            }
          }
          coordinator.Heartbeat(session, {}, {}, Now::Of(clock)).IgnoreError();
          std::this_thread::yield();
        }
        EXPECT_LE(coordinator.Workers().size(), 4u);
        coordinator.Findings(now);
        coordinator.CloseWorker(session, i % 2 == 0, now);
      }
    });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  driver.join();
  EXPECT_EQ(answers, 4 * 30);
  EXPECT_FALSE(told.empty());
  Coordinator again(config, &store, 8, [] {});
  ASSERT_TRUE(again.Recover().ok());
  for (Coordinator* each : {&coordinator, &again}) {
    std::map<std::string, Digest> there;
    for (const JobView& view : each->Jobs())
      there[view.info->spec.name] = view.info->plan_hash;
    for (const auto& [name, plan_hash] : told)
      EXPECT_EQ(there[name], plan_hash) << name;
  }
  coordinator.Shutdown();
}

}  // namespace
}  // namespace leat::server
