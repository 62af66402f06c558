// SPDX-License-Identifier: Apache-2.0
//
// Workers receive the cached fraction of each other owner, when it has changed
// by a step, and not more often than useful.
#include "server/membership/kept_shares.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

// Sends a heartbeat of a worker that has this many records in memory, and this
// many entries on its disk.
void Beat(World& world, SessionId session, const std::string& dataset,
          uint64_t records, uint64_t on_disk = 0, bool disk_of_records = true) {
  auto stats = std::make_shared<v1::WorkerStats>();
  v1::CachedDataset& memory = *stats->add_cached_datasets();
  memory.set_dataset("photos");
  memory.set_dataset_id(dataset);
  memory.set_entries(records);
  v1::CachedDataset& disk = *stats->add_disk_cached_datasets();
  disk.set_dataset("photos");
  if (disk_of_records) disk.set_dataset_id(dataset);
  disk.set_entries(on_disk);
  ASSERT_TRUE(world->Heartbeat(session, {0, stats}, {}, world.now()).ok());
}

// The fraction that the worker knows of a peer, and the number of messages.
struct Told {
  int times = 0;
  std::optional<double> share;
};
Told Take(World& world, SessionId session, const std::string& peer) {
  Told told;
  for (const WorkerMessage& message : world.Take(session))
    if (const auto* owned = std::get_if<OwnedShards>(&message)) {
      ++told.times;
      const Assignment* table = nullptr;
      for (const auto& [index, shards] : owned->Peers(&table))
        if (table->workers[index].name == peer)
          told.share = owned->kept->Of(owned->dataset_id, peer);
    }
  return told;
}

// Two workers and 1,000 samples; `a` is primary owner of about half.
class KeptSharesTest : public testing::Test {
 protected:
  void SetUp() override {
    a_ = world_.Join("a");
    dataset_ = world_.MakeJob(SpecOf("j", "/d"), a_)->datasets[0].id;
    b_ = world_.Join("b");
    world_.Advance(milliseconds(60));
    for (const ShardView& shard : Shards())
      owned_ += shard.owners.front() == "a" ? shard.range.size() : 0;
    ASSERT_GT(owned_, 300u);
    EXPECT_EQ(Take(world_, b_, "a").share, std::nullopt) << "not known yet";
    Take(world_, a_, "b");
  }
  // Lets time pass, in which both send heartbeats.
  void Wait(Duration duration) {
    for (; duration > Duration::zero(); duration -= milliseconds(500)) {
      world_.Advance(std::min<Duration>(duration, milliseconds(500)));
      for (const SessionId each : {a_, b_}) ASSERT_TRUE(world_.Beat(each).ok());
    }
  }
  std::vector<ShardView> Shards() { return *world_->Shards(dataset_); }
  // Lets `a` report that it caches this many per cent of its records.
  void BeatA(uint64_t percent) {
    Beat(world_, a_, dataset_, owned_ * percent / 100);
  }

  World world_;
  SessionId a_ = 0, b_ = 0;
  std::string dataset_;
  uint64_t owned_ = 0;  // by a
};

TEST_F(KeptSharesTest, AreTheStepsOfHeartbeatsAndToldOnceAStep) {
  BeatA(0);
  Wait(seconds(1));
  EXPECT_EQ(Take(world_, b_, "a").times, 0) << "too early";
  Wait(KeptShares::kPause);
  Told told = Take(world_, b_, "a");
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(told.share, 0);
  EXPECT_EQ(Take(world_, a_, "b").times, 0) << "its own";
  BeatA(1);
  Wait(KeptShares::kPause);
  EXPECT_EQ(Take(world_, b_, "a").share, 1.0 / 8) << "more than nothing";
  // The fraction stays within a step for half an hour, so no message is sent.
  for (int i = 0; i < 1800; ++i) {
    BeatA(5 + static_cast<uint64_t>(i % 10));
    Wait(seconds(1));
  }
  EXPECT_EQ(Take(world_, b_, "a").times, 0);
  BeatA(100);
  Wait(KeptShares::kPause);
  told = Take(world_, b_, "a");
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(told.share, 1);
  for (const ShardView& shard : Shards())
    EXPECT_EQ(shard.kept_share,
              shard.owners.front() == "a" ? std::optional(1.0) : std::nullopt);
}

TEST_F(KeptSharesTest, ChangesAreToldTogether) {
  int times = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    BeatA(i % 2 == 0 ? 10 : 90);
    Wait(milliseconds(500));
    times += Take(world_, b_, "a").times;
  }
  EXPECT_GE(times, 5);
  EXPECT_LE(times, 50 / 5);
}

TEST_F(KeptSharesTest, AreOfMemoryOrOfADiskThatHoldsRecords) {
  const auto told = [&](uint64_t records, uint64_t on_disk, bool of_records) {
    Beat(world_, a_, dataset_, records, on_disk, of_records);
    Wait(KeptShares::kPause + seconds(1));
    return Take(world_, b_, "a").share;
  };
  EXPECT_EQ(told(owned_ / 4, owned_, true), 1);
  EXPECT_EQ(told(owned_ / 2, owned_, false), 4.0 / 8) << "of ranges";
  EXPECT_EQ(told(10 * owned_, 0, true), 1) << "it keeps what it owned before";
  // The cached records of an unknown dataset do not matter for this one.
  Beat(world_, a_, "no such dataset", 5);
  Wait(KeptShares::kPause);
  EXPECT_EQ(Take(world_, b_, "a").share, std::nullopt);
}

TEST_F(KeptSharesTest, OfWorkersThatDoNotTellOrAreNewNothingIsKnown) {
  Beat(world_, a_, "", 100);  // an earlier release
  Wait(KeptShares::kPause);
  EXPECT_EQ(Take(world_, b_, "a").times, 0);
  BeatA(100);
  Wait(KeptShares::kPause);
  EXPECT_EQ(Take(world_, b_, "a").share, 1);
  a_ = world_.Join("a");  // another process, with empty caches
  world_.Join("c");
  Wait(seconds(1));
  const Told told = Take(world_, b_, "a");
  EXPECT_GE(told.times, 1);
  EXPECT_EQ(told.share, std::nullopt);
}

TEST(KeptSteps, StayUntilTheShareIsBeyond) {
  KeptShares shares;
  const auto step = [&](double share) {
    shares.Note("w", {{"d", share}}, MonotonicTime());
    return *shares.Of("d", "w") * KeptShares::kSteps;
  };
  EXPECT_EQ(step(0), 0);
  EXPECT_EQ(step(0.02), 1);
  EXPECT_EQ(step(0.12), 1);
  EXPECT_EQ(step(0.14), 1);
  EXPECT_EQ(step(0.16), 2);
  EXPECT_EQ(step(0.14), 2);
  EXPECT_EQ(step(0.10), 2);
  EXPECT_EQ(step(0.09), 1);
  EXPECT_EQ(step(1e-9), 1);
  EXPECT_EQ(step(0), 0);
  EXPECT_EQ(step(5), 8);
  EXPECT_EQ(step(0.86), 8);
  EXPECT_EQ(step(-1), 0);
  EXPECT_EQ(step(std::nan("")), 0);
  EXPECT_EQ(shares.Of("e", "w"), std::nullopt);
  EXPECT_EQ(shares.Of("d", "x"), std::nullopt);
}

}  // namespace
}  // namespace leat::server
