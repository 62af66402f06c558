// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/assignment.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

std::vector<AssignedWorker> Workers(int count, double weight = 1) {
  std::vector<AssignedWorker> workers;
  for (int i = 0; i < count; ++i)
    workers.push_back({fmt::format("worker-{:04}", i), weight});
  return workers;
}

std::string Owner(const Assigner& assigner, uint32_t shard, uint32_t rank = 0) {
  const uint32_t stride = assigner.owners_per_shard();
  return assigner.workers()[assigner.owners()[shard * stride + rank]].name;
}

std::vector<std::string> FirstOwners(const Assigner& assigner) {
  std::vector<std::string> owners;
  for (uint32_t shard = 0; shard < assigner.num_shards(); ++shard)
    owners.push_back(Owner(assigner, shard));
  return owners;
}

// Checks the invariants of every table.
void ExpectSound(const Assigner& assigner) {
  const uint32_t stride = assigner.owners_per_shard();
  ASSERT_EQ(assigner.owners().size(), size_t{assigner.num_shards()} * stride);
  if (stride == 0) return;
  double total = 0;
  for (const AssignedWorker& worker : assigner.workers())
    total += worker.weight;
  std::vector<uint32_t> loads(assigner.workers().size());
  for (uint32_t shard = 0; shard < assigner.num_shards(); ++shard) {
    std::set<uint16_t> owners;
    for (uint32_t i = 0; i < stride; ++i) {
      const uint16_t owner = assigner.owners()[shard * stride + i];
      ASSERT_LT(owner, assigner.workers().size());
      owners.insert(owner);
    }
    ASSERT_EQ(owners.size(), stride) << "an owner twice in shard " << shard;
    ++loads[assigner.owners()[shard * stride]];
  }
  for (size_t i = 0; i < loads.size(); ++i) {
    ASSERT_EQ(loads[i], assigner.load(i));
    const double fair =
        assigner.num_shards() * assigner.workers()[i].weight / total;
    ASSERT_LE(loads[i], kLoadBound * fair + 1) << assigner.workers()[i].name;
  }
}

TEST(Assigner, WithoutWorkersNobodyOwnsAnything) {
  Assigner assigner("d", 10);
  EXPECT_FALSE(assigner.SetWorkers({}));
  EXPECT_EQ(assigner.owners_per_shard(), 0u);
  EXPECT_TRUE(assigner.owners().empty());
}

TEST(Assigner, ADatasetWithoutShardsIsFine) {
  Assigner assigner("d", 0);
  EXPECT_TRUE(assigner.SetWorkers(Workers(3)));
  EXPECT_TRUE(assigner.owners().empty());
}

TEST(Assigner, OneWorkerOwnsEverything) {
  Assigner assigner("d", 100);
  EXPECT_TRUE(assigner.SetWorkers(Workers(1)));
  ExpectSound(assigner);
  EXPECT_EQ(assigner.load(0), 100u);
}

TEST(Assigner, TheSameWorkersInAnyOrderChangeNothing) {
  Assigner assigner("d", 500);
  std::vector<AssignedWorker> workers = Workers(7);
  EXPECT_TRUE(assigner.SetWorkers(workers));
  std::reverse(workers.begin(), workers.end());
  EXPECT_FALSE(assigner.SetWorkers(workers));
}

TEST(Assigner, IsAFunctionOfItsArguments) {
  Assigner a("d", 1000), b("d", 1000), other("e", 1000);
  a.SetWorkers(Workers(9));
  b.SetWorkers(Workers(9));
  other.SetWorkers(Workers(9));
  EXPECT_THAT(a.owners(), testing::ElementsAreArray(b.owners()));
  EXPECT_NE(FirstOwners(a), FirstOwners(other));
}

TEST(Assigner, EveryNumberOfWorkersIsSound) {
  for (int workers = 1; workers <= 40; ++workers) {
    for (uint32_t shards : {1u, 2u, 7u, 64u, 513u}) {
      Assigner assigner("d", shards);
      assigner.SetWorkers(Workers(workers));
      ExpectSound(assigner);
    }
  }
}

TEST(Assigner, LosingAWorkerMovesOnlyItsShards) {
  Assigner assigner("d", 5000);
  std::vector<AssignedWorker> workers = Workers(50);
  assigner.SetWorkers(workers);
  while (workers.size() > 1) {
    const std::vector<std::string> before = FirstOwners(assigner);
    const std::string lost = workers[workers.size() / 2].name;
    workers.erase(workers.begin() + workers.size() / 2);
    EXPECT_TRUE(assigner.SetWorkers(workers));
    ExpectSound(assigner);
    const std::vector<std::string> after = FirstOwners(assigner);
    for (size_t shard = 0; shard < before.size(); ++shard) {
      if (before[shard] != lost) {
        ASSERT_EQ(before[shard], after[shard]);
      }
    }
  }
}

TEST(Assigner, ALostWorkersShardsGoMostlyToTheirSecondOwners) {
  Assigner assigner("d", 10000);
  std::vector<AssignedWorker> workers = Workers(20);
  assigner.SetWorkers(workers);
  std::vector<std::pair<uint32_t, std::string>> heirs;
  for (uint32_t shard = 0; shard < 10000; ++shard)
    if (Owner(assigner, shard) == "worker-0003")
      heirs.emplace_back(shard, Owner(assigner, shard, 1));
  workers.erase(workers.begin() + 3);
  assigner.SetWorkers(workers);
  int inherited = 0;
  for (const auto& [shard, heir] : heirs)
    inherited += Owner(assigner, shard) == heir;
  EXPECT_GT(inherited, static_cast<int>(heirs.size()) / 2);
}

TEST(Assigner, AJoiningWorkerTakesItsShareAndLittleElseMoves) {
  Assigner assigner("d", 10000);
  std::vector<AssignedWorker> workers = Workers(20);
  assigner.SetWorkers(workers);
  const std::vector<std::string> before = FirstOwners(assigner);
  workers.push_back({"newcomer", 1});
  EXPECT_TRUE(assigner.SetWorkers(workers));
  ExpectSound(assigner);
  const std::vector<std::string> after = FirstOwners(assigner);
  int taken = 0, others = 0;
  for (size_t shard = 0; shard < before.size(); ++shard) {
    if (after[shard] == before[shard]) continue;
    ++(after[shard] == "newcomer" ? taken : others);
  }
  EXPECT_NEAR(taken, 10000 / 21, 120);
  EXPECT_LT(others, 200);
}

TEST(Assigner, LoadFollowsWeights) {
  Assigner assigner("d", 20000);
  std::vector<AssignedWorker> workers = Workers(10);
  for (int i = 0; i < 10; ++i) workers[i].weight = i < 5 ? 1 : 4;
  assigner.SetWorkers(workers);
  ExpectSound(assigner);
  for (uint16_t i = 0; i < 10; ++i)
    EXPECT_NEAR(assigner.load(i), i < 5 ? 800 : 3200, i < 5 ? 130 : 500);
}

TEST(Assigner, AChangedWeightMovesShardsTowardsIt) {
  Assigner assigner("d", 20000);
  std::vector<AssignedWorker> workers = Workers(10);
  assigner.SetWorkers(workers);
  workers[4].weight = 3;
  EXPECT_TRUE(assigner.SetWorkers(workers));
  ExpectSound(assigner);
  EXPECT_NEAR(assigner.load(4), 5000, 500);
  workers[4].weight = 0.25;
  EXPECT_TRUE(assigner.SetWorkers(workers));
  ExpectSound(assigner);
  EXPECT_LT(assigner.load(4), 640u);
}

TEST(Assigner, AllWeightsScaledAlikeChangeNoOwner) {
  Assigner assigner("d", 3000);
  assigner.SetWorkers(Workers(12, 1));
  const std::vector<std::string> before = FirstOwners(assigner);
  EXPECT_FALSE(assigner.SetWorkers(Workers(12, 8)));
  EXPECT_EQ(before, FirstOwners(assigner));
}

TEST(Assigner, RandomChurnStaysSound) {
  std::mt19937_64 random(5);
  Assigner assigner("d", 700);
  std::vector<AssignedWorker> pool = Workers(30);
  for (int round = 0; round < 300; ++round) {
    std::vector<AssignedWorker> now;
    for (AssignedWorker& worker : pool) {
      if (random() % 12 == 0) worker.weight = std::exp2(random() % 5);
      if (random() % 4) now.push_back(worker);
    }
    if (round % 50 == 49) now.clear();
    assigner.SetWorkers(now);
    ExpectSound(assigner);
  }
}

TEST(Assigner, OwnersAreOrderedByRankBehindTheFirst) {
  // If every worker has room, the order must be that of a new table.
  Assigner grown("d", 200), fresh("d", 200);
  std::vector<AssignedWorker> workers = Workers(6);
  for (size_t n = 1; n <= workers.size(); ++n)
    grown.SetWorkers(std::span(workers).first(n));
  fresh.SetWorkers(workers);
  int same = 0;
  for (uint32_t shard = 0; shard < 200; ++shard) {
    // If a bound gave the shard another primary owner, the others are ranked
    // after it.
    if (Owner(grown, shard) != Owner(fresh, shard)) continue;
    ++same;
    for (uint32_t rank = 1; rank < 3; ++rank)
      EXPECT_EQ(Owner(grown, shard, rank), Owner(fresh, shard, rank))
          << "shard " << shard << " rank " << rank;
  }
  EXPECT_GT(same, 160);
}

}  // namespace
}  // namespace leat
