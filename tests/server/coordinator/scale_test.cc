// SPDX-License-Identifier: Apache-2.0
//
// The cost of calls, and the number of messages.
#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "gtest/gtest.h"
#include "leat/v1/coordinator.pb.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

const std::vector<DecoderClass> kAll = {DecoderClass::kExact,
                                        DecoderClass::kNvjpeg};

// A store whose appends wait at a gate.
class GateStore : public MemoryStore {
 public:
  absl::Status Append(const Event& event) override {
    waiting = true;
    while (!open) std::this_thread::yield();
    return MemoryStore::Append(event);
  }
  std::atomic<bool> open = true, waiting = false;
};

TEST(Scale, AWriteThatWaitsForTheDiskHoldsUpNobodyElse) {
  auto store = std::make_shared<GateStore>();
  World world({}, store);
  const SessionId a = world.Join("a");
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  store->open = store->waiting = false;
  bool drained = false;
  world->DrainWorker("a", true, world.now(),
                     [&](const absl::Status&) { drained = true; });
  std::thread writer([&] { world->RunTransaction(world.now()); });
  while (!store->waiting) std::this_thread::yield();
  EXPECT_TRUE(world.Beat(a).ok());
  const SessionId b = world.Join("b");
  EXPECT_FALSE(world.Take(b).empty()) << "not even welcomed";
  world->Tick(world.now());
  EXPECT_NE(world.Open(*job, "c"), 0u);
  EXPECT_EQ(world->Workers().size(), 2u);
  EXPECT_TRUE(world->Findings(world.now()).empty());
  EXPECT_FALSE(drained);
  store->open = true;
  writer.join();
  EXPECT_TRUE(drained);
}

TEST(Scale, HeartbeatsLookAtFewWorkersAlsoWhenNobodyHasMeasuredARate) {
  World world;
  constexpr int kWorkers = 500, kSeconds = 20;
  std::vector<SessionId> sessions;
  for (int i = 0; i < kWorkers; ++i)
    sessions.push_back(world.Join(fmt::format("w{}", i)));
  const uint64_t before = world->member_visits();
  for (int i = 0; i < kSeconds; ++i) {
    for (const SessionId session : sessions)
      ASSERT_TRUE(world.Beat(session).ok());
    world.Advance(seconds(1));
  }
  EXPECT_LE(world->member_visits() - before, uint64_t{3} * kSeconds * kWorkers);
}

TEST(Scale, ConsumersThatOpenMakeNoNewVersions) {
  World world;
  const auto job = world.MakeJob(SpecOf("j", "/d"), world.Join("first"));
  const auto before = *world->NextForConsumer(world.Open(*job, "c"));
  for (int i = 0; i < 20; ++i) {
    world.Join(fmt::format("w{}", i));
    world.Open(*job, fmt::format("c{}", i));
    world.Write();
  }
  world.Advance(milliseconds(60));
  const auto after =
      world->AssignmentOf(job->datasets[0].id, DecoderClass::kExact);
  EXPECT_EQ(after->version, before->version + 1);
}

TEST(Scale, ATableIsEncodedOnceForAllItsConsumers) {
  World world;
  const auto job = world.MakeJob(SpecOf("j", "/d"), world.Join("a"));
  const auto one = *world->NextForConsumer(world.Open(*job, "c"));
  const auto two = *world->NextForConsumer(world.Open(*job, "d"));
  EXPECT_EQ(one.get(), two.get());
  v1::ConsumerSessionResponse response;
  ASSERT_TRUE(response.ParseFromString(one->encoded));
  const v1::Assignment& sent = response.assignment();
  EXPECT_EQ(sent.dataset_id(), job->datasets[0].id);
  EXPECT_EQ(sent.instance(), one->instance);
  EXPECT_EQ(sent.version(), one->version);
  EXPECT_EQ(sent.owners(), one->owners);
  EXPECT_EQ(sent.owners_per_shard(), one->owners_per_shard);
  ASSERT_EQ(sent.workers_size(), 1);
  EXPECT_EQ(sent.workers(0).name(), "a");
  EXPECT_EQ(sent.workers(0).address(), "a:7500");
}

// The shards of the worker's last message about the dataset; and the number of
// messages.
struct Told {
  std::set<uint32_t> shards;
  uint32_t num_shards = 0;
  int times = 0;
};
Told Owned(World& world, SessionId session) {
  Told told;
  for (const WorkerMessage& message : world.Take(session))
    if (const auto* owned = std::get_if<OwnedShards>(&message)) {
      ++told.times;
      told.num_shards = owned->num_shards;
      told.shards.clear();
      const std::string bits = owned->Bits();
      EXPECT_EQ(bits.size(), (owned->num_shards + 7) / 8);
      for (uint32_t i = 0; i < owned->num_shards; ++i)
        if (bits[i / 8] >> i % 8 & 1) told.shards.insert(i);
    }
  return told;
}

TEST(Scale, WorkersAreToldTheirOwnShardsAndOnlyWhenTheseChange) {
  World world;
  std::map<std::string, SessionId> sessions;
  for (int i = 0; i < 20; ++i)
    sessions[fmt::format("w{}", i)] = world.Join(fmt::format("w{}", i));
  const auto job = world.MakeJob(SpecOf("j", "/d"), sessions["w0"], 10'000, 10);
  const auto table =
      world->AssignmentOf(job->datasets[0].id, DecoderClass::kExact);
  std::set<uint32_t> seen;
  for (const auto& [name, session] : sessions) {
    const Told told = Owned(world, session);
    EXPECT_EQ(told.num_shards, 1000u);
    for (const uint32_t shard : told.shards) {
      EXPECT_EQ(FirstOwner(*table, shard), name);
      EXPECT_TRUE(seen.insert(shard).second);
    }
  }
  EXPECT_EQ(seen.size(), 1000u);
  // The shards of one worker go to some others; the rest get no message.
  world->CloseWorker(sessions["w7"], true, world.now());
  sessions.erase("w7");
  world.Advance(milliseconds(60));
  const auto next =
      world->AssignmentOf(job->datasets[0].id, DecoderClass::kExact);
  std::set<std::string> heirs;
  for (uint32_t shard = 0; shard < 1000; ++shard)
    if (FirstOwner(*table, shard) != FirstOwner(*next, shard))
      heirs.insert(FirstOwner(*next, shard));
  for (const auto& [name, session] : sessions)
    EXPECT_EQ(Owned(world, session).times, heirs.contains(name)) << name;
  // A drained worker is told that it owns nothing.
  ASSERT_TRUE(world.Drain("w3").ok());
  world.Advance(milliseconds(60));
  const Told drained = Owned(world, sessions["w3"]);
  EXPECT_EQ(drained.times, 1);
  EXPECT_TRUE(drained.shards.empty());
}

TEST(Scale, AWorkerOwnsWhatAnyTableOfTheDatasetSays) {
  World world;
  const SessionId cpu = world.Join(WorkerOf("cpu"));
  const SessionId gpu = world.Join(WorkerOf("gpu", 2, kAll));
  JobSpec spec = SpecOf("exact", "/d");
  const auto exact = world.MakeJob(spec, cpu);
  EXPECT_LT(Owned(world, gpu).shards.size(), 100u);
  spec.name = "nvjpeg";
  spec.decoder_class = DecoderClass::kNvjpeg;
  world.MakeJob(spec, cpu);
  EXPECT_EQ(Owned(world, gpu).shards.size(), 100u)
      << "all rows of the class are its own";
  const size_t cpu_owns = Owned(world, cpu).shards.size();
  // A removed table is a change for its owners.
  ASSERT_TRUE(world.DeleteJob("exact").ok());
  const Told after = Owned(world, cpu);
  EXPECT_EQ(after.times, 1);
  EXPECT_TRUE(after.shards.empty()) << cpu_owns;
}

// --- Pages

TEST(Scale, ListsComeInPagesInTheOrderOfNames) {
  World world;
  const SessionId a = world.Join("w00");
  for (int i = 1; i < 25; ++i) world.Join(fmt::format("w{:02}", i));
  std::shared_ptr<const JobInfo> job;
  for (int i = 0; i < 25; ++i)
    job = world.MakeJob(SpecOf(fmt::format("j{:02}", i), "/d"), a);
  for (int i = 0; i < 25; ++i) world.Open(*job, fmt::format("s{:02}", i));
  // The first "a" has connected again.
  for (const char* name : {"a", "b", "a"}) world.Open(*job, name);

  std::vector<std::string> workers, jobs, consumers;
  Page page{"", 10};
  for (auto views = world->Workers(page); !views.empty();
       views = world->Workers(page)) {
    EXPECT_LE(views.size(), 10u);
    for (const auto& view : views) workers.push_back(view.registration->name);
    page.after = workers.back();
  }
  for (page.after = ""; true; page.after = jobs.back()) {
    const auto views = world->Jobs(page);
    if (views.empty()) break;
    for (const auto& view : views) jobs.push_back(view.info->spec.name);
  }
  page.after = "";
  for (auto views = world->Consumers(page); !views.empty();
       views = world->Consumers(page)) {
    for (const auto& view : views) consumers.push_back(view.opening.consumer);
    page.after = views.back().key;
  }
  EXPECT_EQ(workers.size(), 25u);
  EXPECT_TRUE(std::is_sorted(workers.begin(), workers.end()));
  EXPECT_EQ(jobs.size(), 25u);
  EXPECT_TRUE(std::is_sorted(jobs.begin(), jobs.end()));
  EXPECT_EQ(consumers.size(), 27u);
  EXPECT_TRUE(std::is_sorted(consumers.begin(), consumers.end()));
}

}  // namespace
}  // namespace leat::server
