// SPDX-License-Identifier: Apache-2.0
//
// The coordinator's decisions about pools, and the messages to watchers.
#include "core/cluster/pool_policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A trainer that could take `demand` rows/s of workers of 100 rows/s each.
class PoolsTest : public testing::Test {
 protected:
  void SetUp() override { world_->Tick(world_.now()); }

  absl::Status Set(const std::string& pool, PoolBounds bounds) {
    absl::Status result = Internal("not answered");
    world_->SetPool(pool, bounds,
                    [&](absl::Status status) { result = status; });
    world_.Write();
    return result;
  }
  void Join(const std::string& name, const std::string& pool = "cpu") {
    WorkerRegistration worker = WorkerOf(name);
    worker.pool = pool;
    sessions_[name] = world_.Join(worker);
  }
  void Leave(const std::string& name) {
    world_->CloseWorker(sessions_.at(name), /*left=*/true, world_.now());
    sessions_.erase(name);
  }
  void Train() {
    job_ = world_.MakeJob(SpecOf("train", "/d"), sessions_.begin()->second);
    ASSERT_NE(job_, nullptr);
    consumer_ = world_.Open(*job_, "c");
  }
  // Runs a second at a time: heartbeats, and the trainer's waits.
  void Run(int seconds_long) {
    for (int i = 0; i < seconds_long; ++i) {
      size_t serving = 0;
      for (const WorkerView& worker : world_->Workers())
        serving += worker.state == WorkerState::kReady;
      for (const auto& [name, session] : sessions_)
        ASSERT_TRUE(world_.Beat(session, 100).ok());
      if (consumer_ != 0) {
        const double made = 100 * static_cast<double>(serving);
        const double taken = std::min(made, demand_);
        rows_ += static_cast<uint64_t>(taken);
        waited_ns_ += static_cast<uint64_t>((1 - taken / demand_) * 1e9);
        auto stats = std::make_shared<v1::ConsumerStats>();
        stats->set_rows_total(rows_);
        v1::StageStats& train = *stats->add_stages();
        train.set_stage(v1::STAGE_TRAIN);
        train.set_input_ns_total(waited_ns_);
        train.set_queue_capacity(4);
        ASSERT_TRUE(
            world_->ReportConsumer(consumer_, {.stats = stats}, world_.now())
                .ok());
      }
      world_.Advance(seconds(1));
    }
  }
  PoolView Pool(const std::string& name) {
    for (const PoolView& view : world_->Pools(world_.now().mono))
      if (view.name == name) return view;
    ADD_FAILURE() << "no pool " << name;
    return {};
  }
  // Returns all views that the watcher gets now.
  std::vector<PoolView> Told(uint64_t watcher) {
    std::vector<PoolView> told;
    while (true) {
      const auto next = world_->NextForWatcher(watcher);
      if (!next.ok() || !next->has_value()) return told;
      told.push_back(**next);
    }
  }
  WorkerState StateOf(const std::string& name) {
    for (const WorkerView& worker : world_->Workers())
      if (worker.registration->name == name) return worker.state;
    return WorkerState::kLost;
  }

  World world_;
  std::map<std::string, SessionId> sessions_;
  std::shared_ptr<const JobInfo> job_;
  SessionId consumer_ = 0;
  double demand_ = 240;
  uint64_t rows_ = 0, waited_ns_ = kSecond;
};

TEST_F(PoolsTest, MoreWorkersAreWantedWhileATrainerWaits) {
  ASSERT_TRUE(Set("cpu", {1, 8}).ok());
  Join("a");
  Train();
  Run(20);
  EXPECT_EQ(Pool("cpu").target.desired, 3u) << Pool("cpu").target.reason;
  EXPECT_THAT(Pool("cpu").target.reason, HasSubstr("job train waits"));
  Join("b");
  Join("c");
  Run(60);
  EXPECT_EQ(Pool("cpu").target.desired, 3u) << Pool("cpu").target.reason;
  EXPECT_NEAR(Pool("cpu").target.demand_rows_per_s, 240, 5);
  // Ten minutes after the trainer wants less, one of them ends.
  demand_ = 120;
  Run(11 * 60);
  const PoolView view = Pool("cpu");
  EXPECT_EQ(view.target.desired, 2u) << view.target.reason;
  ASSERT_EQ(view.target.drain.size(), 1u);
  EXPECT_EQ(StateOf(view.target.drain.front()), WorkerState::kDraining);
  EXPECT_EQ(view.workers, 3u);
  EXPECT_EQ(view.draining, 1u);
  Leave(view.target.drain.front());
  Run(10);
  EXPECT_THAT(Pool("cpu").target.drain, IsEmpty());
}

TEST_F(PoolsTest, APoolThatNobodyScalesHasADemandToo) {
  Join("a");
  Join("other", "gpu");
  Train();
  demand_ = 300;
  Run(10);
  // Each computes half of the rows.
  EXPECT_NEAR(Pool("cpu").target.demand_rows_per_s, 150, 10);
  EXPECT_NEAR(Pool("gpu").target.demand_rows_per_s, 150, 10);
  EXPECT_EQ(Pool("cpu").target.desired, 1u);
}

TEST_F(PoolsTest, AWorkerThatWasToGoIsKeptWhenItIsWantedAgain) {
  ASSERT_TRUE(Set("cpu", {0, 8}).ok());
  Join("a");
  Join("b");
  Run(10);
  ASSERT_TRUE(Set("cpu", {0, 1}).ok());
  EXPECT_THAT(Pool("cpu").target.drain, ElementsAre("a"));
  EXPECT_EQ(StateOf("a"), WorkerState::kDraining);
  ASSERT_TRUE(Set("cpu", {2, 8}).ok());
  EXPECT_THAT(Pool("cpu").target.drain, IsEmpty());
  EXPECT_EQ(StateOf("a"), WorkerState::kReady);
  // Also when the pool is no longer scaled.
  ASSERT_TRUE(Set("cpu", {0, 1}).ok());
  EXPECT_EQ(StateOf("a"), WorkerState::kDraining);
  ASSERT_TRUE(Set("cpu", {0, 0}).ok());
  EXPECT_EQ(StateOf("a"), WorkerState::kReady);
  EXPECT_EQ(Pool("cpu").bounds.max, 0u);
}

TEST_F(PoolsTest, AWorkerThatAnOperatorDrainedIsToBeTakenAway) {
  ASSERT_TRUE(Set("cpu", {2, 8}).ok());
  Join("a");
  Join("b");
  Run(4);
  ASSERT_TRUE(world_.Drain("b").ok());
  Run(4);
  EXPECT_THAT(Pool("cpu").target.drain, ElementsAre("b"));
  EXPECT_EQ(Pool("cpu").target.desired, 2u) << "another one takes its place";
}

TEST_F(PoolsTest, APoolsWorkersAreItsOwn) {
  ASSERT_TRUE(Set("cpu", {0, 1}).ok());
  Join("a", "cpu");
  Join("b", "gpu");
  Join("c", std::string(kDefaultPool));
  Run(10);
  EXPECT_THAT(Pool("cpu").target.drain, IsEmpty());
  EXPECT_EQ(Pool("gpu").bounds.max, 0u);
  EXPECT_EQ(Pool("gpu").target.desired, 1u);
  EXPECT_THAT(Pool("gpu").target.reason, HasSubstr("leat pool set gpu"));
  EXPECT_EQ(Pool("default").workers, 1u);
}

TEST_F(PoolsTest, AWatcherIsToldWhatChangesAndNothingTwice) {
  int wakes = 0;
  const absl::StatusOr<uint64_t> watcher =
      world_->WatchPool("cpu", [&] { ++wakes; });
  ASSERT_TRUE(watcher.ok());
  std::vector<PoolView> told = Told(*watcher);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].bounds.max, 0u) << "nobody has set it";
  ASSERT_TRUE(Set("cpu", {2, 8}).ok());
  EXPECT_EQ(wakes, 1);
  told = Told(*watcher);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].target.desired, 2u);
  const uint64_t version = told[0].version;
  Join("a");
  Run(30);
  EXPECT_THAT(Told(*watcher), IsEmpty());
  ASSERT_TRUE(Set("cpu", {3, 8}).ok());
  told = Told(*watcher);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_GT(told[0].version, version);
  ASSERT_TRUE(Set("cpu", {0, 0}).ok());
  told = Told(*watcher);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].bounds.max, 0u);
  const absl::StatusOr<uint64_t> second = world_->WatchPool("cpu", [] {});
  EXPECT_EQ(Told(*second).size(), 1u);
  world_->CloseWatcher(*watcher);
  EXPECT_TRUE(absl::IsNotFound(world_->NextForWatcher(*watcher).status()));
  world_->Shutdown();
  EXPECT_TRUE(absl::IsUnavailable(world_->NextForWatcher(*second).status()));
}

TEST_F(PoolsTest, AfterAStartNothingIsDecidedBeforeWorkersCouldComeBack) {
  ASSERT_TRUE(Set("cpu", {1, 8}).ok());
  for (const char* name : {"a", "b", "c"}) Join(name);
  Run(10);
  EXPECT_EQ(Pool("cpu").target.desired, 3u);
  world_.Restart();
  sessions_.clear();
  world_->Tick(world_.now());
  const absl::StatusOr<uint64_t> watcher = world_->WatchPool("cpu", [] {});
  EXPECT_THAT(Told(*watcher), IsEmpty());
  EXPECT_EQ(Pool("cpu").bounds, (PoolBounds{1, 8})) << "they were stored";
  Run(3);
  for (const char* name : {"a", "b", "c"}) Join(name);
  Run(15);
  const std::vector<PoolView> told = Told(*watcher);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].target.desired, 3u) << told[0].target.reason;
}

TEST_F(PoolsTest, WhatIsWrongIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(Set("a b", {1, 2})));
  EXPECT_TRUE(absl::IsInvalidArgument(Set("cpu", {3, 2})));
  EXPECT_TRUE(absl::IsInvalidArgument(world_->WatchPool("", [] {}).status()));
  WorkerRegistration worker = WorkerOf("w");
  worker.pool = "a pool";
  EXPECT_TRUE(absl::IsInvalidArgument(
      world_->RegisterWorker(worker, world_.now(), [] {}).status()));
  EXPECT_THAT(world_->Pools(world_.now().mono), IsEmpty());
  EXPECT_TRUE(Set("never-set", {0, 0}).ok()) << "it is so already";
}

}  // namespace
}  // namespace leat::server
