// SPDX-License-Identifier: Apache-2.0
//
// A coordinator that was stopped, restarted, or cut off from its workers does
// nothing that would stop a consumer.
#include <map>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using absl::StatusCode;

// Workers that beat once a second, a job, and a consumer of it.
class Fleet {
 public:
  explicit Fleet(int size) {
    for (int i = 0; i < size; ++i) Join(fmt::format("w{}", i));
    job_ = world_.MakeJob(SpecOf("j", "/d"), sessions_["w0"]);
    Beat(1);
    consumer_ = world_.Open(*job_, "c");
    table_ = *world_->NextForConsumer(consumer_);
  }
  void Join(const std::string& name) { sessions_[name] = world_.Join(name); }
  // All except `silent` beat for this many seconds.
  void Beat(int times, const std::set<std::string>& silent = {}) {
    for (int i = 0; i < times; ++i) {
      world_.Advance(seconds(1));
      for (const auto& [name, session] : sessions_) {
        if (!silent.contains(name)) {
          ASSERT_TRUE(world_.Beat(session).ok());
        }
      }
    }
  }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& [name, session] : sessions_) names.insert(name);
    return names;
  }
  int Lost() {
    int lost = 0;
    for (const WorkerView& view : world_->Workers())
      lost += view.state == WorkerState::kLost;
    return lost;
  }
  std::shared_ptr<const Assignment> Next() {
    return *world_->NextForConsumer(consumer_);
  }

  World world_;
  std::map<std::string, SessionId> sessions_;
  std::shared_ptr<const JobInfo> job_;
  SessionId consumer_ = 0;
  std::shared_ptr<const Assignment> table_;
};

TEST(Outage, AfterARestartTheFirstTableIsWhole) {
  Fleet fleet(10);
  World& world = fleet.world_;
  world.Restart();
  const SessionId early = world.Open(*fleet.job_, "early");
  EXPECT_EQ(*world->NextForConsumer(early), nullptr)
      << "rather none than an empty one";
  world.Advance(seconds(30));
  EXPECT_EQ(*world->NextForConsumer(early), nullptr)
      << "nor one of nobody later";
  for (int i = 0; i < 10; ++i) {
    fleet.Join(fmt::format("w{}", i));
    world.Advance(milliseconds(200));
    EXPECT_EQ(*world->NextForConsumer(early), nullptr)
        << "nor one of " << i + 1 << " workers, which all would ask";
  }
  fleet.Beat(4);
  const auto first = *world->NextForConsumer(early);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->workers.size(), 10u);
  EXPECT_EQ(first->owners, fleet.table_->owners);
}

TEST(Outage, WorkersThatComeForEverHoldTheFirstTableUpForAWhileOnly) {
  Fleet fleet(1);
  World& world = fleet.world_;
  world.Restart();
  const SessionId consumer = world.Open(*fleet.job_, "c");
  fleet.sessions_.clear();
  for (int i = 0; i < 40; ++i) {
    fleet.Join(fmt::format("w{}", i));
    fleet.Beat(1);
  }
  EXPECT_NE(*world->NextForConsumer(consumer), nullptr);
}

TEST(Outage, AJobThatIsMadeAfterARestartIsServedAtOnce) {
  Fleet fleet(3);
  World& world = fleet.world_;
  world.Restart();
  const SessionId a = world.Join("w0");
  const auto job = world.MakeJob(SpecOf("k", "/other"), a);
  ASSERT_NE(job, nullptr);
  EXPECT_NE(*world->NextForConsumer(world.Open(*job, "c")), nullptr);
}

TEST(Outage, WhoIsCutOffFromAllWorkersBelievesNoneLost) {
  Fleet fleet(9);
  fleet.Beat(4, fleet.names());
  EXPECT_EQ(fleet.Lost(), 0);
  EXPECT_TRUE(fleet.world_.Found("WORKERS_SILENT"));
  fleet.Beat(5);
  EXPECT_EQ(fleet.Lost(), 0);
  EXPECT_FALSE(fleet.world_.Found("WORKERS_SILENT"));
  EXPECT_EQ(fleet.Next(), nullptr) << "no table was changed by it";
}

TEST(Outage, AThirdThatComesBackSavesTheRestForATimeOnly) {
  Fleet fleet(9);
  fleet.Beat(4, fleet.names());
  const std::set<std::string> dead = {"w1", "w2", "w3", "w4", "w5"};
  fleet.Beat(2, dead);
  EXPECT_EQ(fleet.Lost(), 0) << "they may be on their way back";
  fleet.Beat(4, dead);
  EXPECT_EQ(fleet.Lost(), 5);
  fleet.Beat(1, dead);
  const auto table = fleet.Next();
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->workers.size(), 4u);
}

// After a start, earlier workers reconnect in a while, without an event each.
TEST(Outage, AStartWithoutWorkersIsNoFindingAtOnce) {
  World world;
  world->Tick(world.now());
  EXPECT_FALSE(world.Found("NO_WORKERS"));
  world.Advance(seconds(9));
  EXPECT_FALSE(world.Found("NO_WORKERS"));
  world.Advance(seconds(2));
  EXPECT_TRUE(world.Found("NO_WORKERS"));
  world.Restart();
  EXPECT_FALSE(world.Found("NO_WORKERS"));
  world->CloseWorker(world.Join("a"), /*left=*/true, world.now());
  EXPECT_TRUE(world.Found("NO_WORKERS")) << "one has come, and has left";
}

TEST(Outage, ATableWithOwnersIsNeverReplacedByAnEmptyOne) {
  Fleet fleet(4);
  World& world = fleet.world_;
  fleet.Beat(60, fleet.names());
  EXPECT_EQ(fleet.Lost(), 4) << "in the end they are believed lost";
  EXPECT_TRUE(world.Found("NO_WORKERS"));
  EXPECT_EQ(fleet.Next(), nullptr);
  const SessionId late = world.Open(*fleet.job_, "late");
  EXPECT_EQ(*world->NextForConsumer(late), fleet.table_);
  // Also when all say good-bye, or are drained.
  fleet.Beat(2);
  for (const auto& [name, session] : fleet.sessions_)
    world->CloseWorker(session, /*left=*/true, world.now());
  world.Advance(seconds(1));
  EXPECT_TRUE(world->Workers().empty());
  EXPECT_FALSE(
      world->AssignmentOf(fleet.job_->datasets[0].id, DecoderClass::kExact)
          ->workers.empty());
}

TEST(Outage, OneSilentWorkerOfManyIsLostInTime) {
  Fleet fleet(9);
  fleet.Beat(3, {"w3"});
  fleet.world_.Advance(milliseconds(100));
  EXPECT_EQ(fleet.Lost(), 1);
  const auto table = fleet.Next();
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->workers.size(), 8u);
}

TEST(Outage, ManyStreamsThatBreakAtOnceAreNoReasonToMoveShards) {
  Fleet fleet(9);
  World& world = fleet.world_;
  for (int i = 0; i < 5; ++i)
    world->CloseWorker(fleet.sessions_[fmt::format("w{}", i)], /*left=*/false,
                       world.now());
  world.Advance(seconds(2));
  EXPECT_EQ(fleet.Lost(), 0);
  for (int i = 0; i < 5; ++i) fleet.Join(fmt::format("w{}", i));
  fleet.Beat(5);
  EXPECT_EQ(fleet.Lost(), 0);
  EXPECT_EQ(fleet.Next(), nullptr);
}

TEST(Outage, AStoppedCoordinatorLosesNobody) {
  Fleet fleet(9);
  World& world = fleet.world_;
  for (int i = 0; i < 3; ++i) {
    world.Stop(seconds(20));
    // The ticker runs before the waiting heartbeats.
    world->Tick(world.now());
    EXPECT_EQ(fleet.Lost(), 0);
    fleet.Beat(5);
    EXPECT_EQ(fleet.Lost(), 0);
  }
  EXPECT_EQ(fleet.Next(), nullptr);
}

TEST(Outage, ALateTickLosesNoSingleWorkerEither) {
  Fleet fleet(1);
  World& world = fleet.world_;
  world.Stop(seconds(10));
  world->Tick(world.now());
  EXPECT_EQ(fleet.Lost(), 0);
  fleet.Beat(3, {"w0"});
  EXPECT_EQ(fleet.Lost(), 1) << "but it is spared once only";
}

TEST(Outage, ListingsSurviveASilenceOfMany) {
  Fleet fleet(6);
  World& world = fleet.world_;
  World::Box box = world.Create(SpecOf("k", "/other"), std::chrono::hours(1));
  std::optional<IndexDirective> asked;
  for (const auto& [name, session] : fleet.sessions_)
    if (!asked) asked = world.Asked(session);
  ASSERT_TRUE(asked.has_value());
  fleet.Beat(4, fleet.names());
  fleet.Beat(3);
  EXPECT_TRUE(world.Upload(HeaderFor(*asked, "x"), "x").ok());
  EXPECT_TRUE(box->has_value() && (*box)->ok());
}

// --- Storage failures

// `fingerprint`: of the dataset there; nullopt: all fail.
StorageFailures FailuresOf(const std::optional<Digest>& fingerprint = {}) {
  v1::StorageFailure failure = FailureWith("/mnt/photos", "Input/output error");
  if (fingerprint)
    failure.add_fingerprints(fingerprint->data(), fingerprint->size());
  return {failure};
}

TEST(Storage, AFailingWorkerOwnsNothingUntilItReadsAgain) {
  Fleet fleet(4);
  World& world = fleet.world_;
  ASSERT_TRUE(world.Beat(fleet.sessions_["w2"], 0, FailuresOf()).ok());
  world.Advance(milliseconds(60));
  const auto without = fleet.Next();
  ASSERT_NE(without, nullptr);
  ASSERT_EQ(without->workers.size(), 3u);
  for (const WorkerRef& worker : without->workers) EXPECT_NE(worker.name, "w2");
  const std::string summary = world.SummaryOf("WORKER_STORAGE");
  EXPECT_THAT(summary, testing::HasSubstr("w2"));
  EXPECT_THAT(summary, testing::HasSubstr("/mnt/photos"));
  EXPECT_THAT(summary, testing::HasSubstr("Input/output error"));
  EXPECT_TRUE(world.Found("WORKER_STORAGE"));
  EXPECT_EQ(world->Workers()[2].state, WorkerState::kReady);

  ASSERT_TRUE(world.Beat(fleet.sessions_["w2"]).ok());
  world.Advance(milliseconds(60));
  const auto mended = fleet.Next();
  ASSERT_NE(mended, nullptr);
  EXPECT_EQ(mended->workers.size(), 4u);
  EXPECT_GT(mended->OwnedBy("w2").size(), 10u);
  EXPECT_FALSE(world.Found("WORKER_STORAGE"));
}

// If one worker cannot read one job's folder, it loses only the shards of that
// dataset.
TEST(Storage, AWorkerKeepsTheShardsOfWhatItCanRead) {
  Fleet fleet(3);
  World& world = fleet.world_;
  const auto other = world.MakeJob(SpecOf("k", "/mnt"), fleet.sessions_["w0"]);
  ASSERT_NE(other, nullptr);
  const SessionId consumer = world.Open(*other, "d");
  ASSERT_NE(*world->NextForConsumer(consumer), nullptr);
  StorageFailures failures = FailuresOf();
  failures = FailuresOf(other->datasets[0].fingerprint);
  ASSERT_TRUE(world.Beat(fleet.sessions_["w1"], 0, failures).ok());
  world.Advance(milliseconds(60));
  EXPECT_EQ(fleet.Next(), nullptr) << "nothing of the first dataset moved";
  auto without = *world->NextForConsumer(consumer);
  ASSERT_NE(without, nullptr);
  EXPECT_EQ(without->workers.size(), 2u);
  EXPECT_TRUE(without->OwnedBy("w1").empty());
  EXPECT_THAT(world.SummaryOf("WORKER_STORAGE"),
              testing::HasSubstr("it owns no shards of that"));

  // It can no longer read the first one, but the second one.
  failures = FailuresOf(fleet.job_->datasets[0].fingerprint);
  ASSERT_TRUE(world.Beat(fleet.sessions_["w1"], 0, failures).ok());
  world.Advance(milliseconds(60));
  without = fleet.Next();
  ASSERT_NE(without, nullptr);
  EXPECT_TRUE(without->OwnedBy("w1").empty());
  const auto mended = *world->NextForConsumer(consumer);
  ASSERT_NE(mended, nullptr);
  EXPECT_FALSE(mended->OwnedBy("w1").empty());
}

TEST(Storage, AFailureOfAllWorkersMovesNothing) {
  Fleet fleet(3);
  World& world = fleet.world_;
  for (const auto& [name, session] : fleet.sessions_)
    ASSERT_TRUE(world.Beat(session, 0, FailuresOf()).ok());
  world.Advance(milliseconds(60));
  EXPECT_EQ(fleet.Next(), nullptr);
  EXPECT_THAT(world.SummaryOf("WORKER_STORAGE"),
              testing::HasSubstr("shards stay where they were"));
  // A new dataset is served by all present workers.
  const auto job = world.MakeJob(SpecOf("k", "/other"), fleet.sessions_["w0"]);
  ASSERT_NE(job, nullptr);
  EXPECT_EQ((*world->NextForConsumer(world.Open(*job, "d")))->workers.size(),
            3u);
}

TEST(Storage, AListingIsGivenToAWorkerWhoseStorageWorks) {
  World world;
  const SessionId a = world.Join("a"), b = world.Join("b");
  ASSERT_TRUE(world.Beat(a, 0, FailuresOf()).ok());
  world.Create(SpecOf("j", "/d"));
  EXPECT_FALSE(world.Asked(a).has_value());
  EXPECT_TRUE(world.Asked(b).has_value());
}

// A dataset in listing has no fingerprint yet: its place shows whether a
// failure concerns it.
TEST(Storage, AListingElsewhereIsGivenToAFailingWorkerToo) {
  for (const auto& [path, concerns] :
       std::map<std::string, bool>{{"/mnt/photos", true},
                                   {"/mnt/photos/train", true},
                                   {"file:///mnt/photos/train", true},
                                   {"/mnt", true},
                                   {"/", true},
                                   {"/mnt/photos-2", false},
                                   {"/d", false},
                                   {"s3://mnt/photos", false}}) {
    World world;
    const SessionId a = world.Join("a"), b = world.Join("b");
    StorageFailures failures = FailuresOf();
    failures = FailuresOf(HashOf("one that is known"));
    ASSERT_TRUE(world.Beat(a, 0, failures).ok());
    world.Create(SpecOf("j", path));
    EXPECT_EQ(world.Asked(b).has_value(), concerns) << path;
    EXPECT_EQ(world.Asked(a).has_value(), !concerns) << path;
  }
}

}  // namespace
}  // namespace leat::server
