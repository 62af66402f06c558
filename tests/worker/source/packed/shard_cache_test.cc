// SPDX-License-Identifier: Apache-2.0
#include "worker/source/packed/shard_cache.h"

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace leat::worker {
namespace {

struct FakeShard {
  uint64_t bytes() const { return 1; }
};
using Shards = ShardCache<FakeShard>;

// Opens once for all threads that come meanwhile.
class ShardCacheTest : public ::testing::Test {
 protected:
  // Lets `threads` threads want the shard while it is being opened; returns
  // their results.
  std::vector<absl::Status> Together(int threads, const absl::Status& status) {
    std::vector<absl::Status> got(static_cast<size_t>(threads));
    std::latch opening(1), release(1);
    const auto get = [&](size_t i, bool first) {
      got[i] = shards_
                   .Get(7,
                        [&]() -> absl::StatusOr<Shards::Ptr> {
                          ++opens_;
                          if (first) opening.count_down();
                          release.wait();
                          if (!status.ok()) return status;
                          return std::make_shared<const FakeShard>();
                        })
                   .status();
    };
    std::thread one([&] { get(0, true); });
    opening.wait();
    std::atomic<int> coming{0};
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i)
      others.emplace_back([&, i] {
        ++coming;
        get(static_cast<size_t>(i), false);
      });
    while (coming < threads - 1) std::this_thread::yield();
    release.count_down();
    one.join();
    for (std::thread& other : others) other.join();
    return got;
  }

  Shards shards_{10, 10};
  std::atomic<int> opens_{0};
};

TEST_F(ShardCacheTest, AShardIsOpenedForAllWhoWantIt) {
  for (const absl::Status& status : Together(4, absl::OkStatus()))
    EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(opens_, 1);
}

// Each of many threads would wait for storage again, one after the other.
TEST_F(ShardCacheTest, AFailureIsEverybodysWhoWaited) {
  for (const absl::Status& status :
       Together(16, absl::UnavailableError("away")))
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  // Threads that came too late to wait may have tried once more.
  EXPECT_LT(opens_, 16);
  EXPECT_TRUE(shards_
                  .Get(7,
                       []() -> absl::StatusOr<Shards::Ptr> {
                         return std::make_shared<const FakeShard>();
                       })
                  .ok())
      << "a failure is not kept";
}

struct SizedShard {
  uint64_t size;
  uint64_t bytes() const { return size; }
};
using SizedShards = ShardCache<SizedShard>;

// Opens it, or finds it; returns whether it was opened.
bool Opens(SizedShards* cache, uint64_t key, uint64_t size) {
  bool opened = false;
  const auto got = cache->Get(key, [&]() -> absl::StatusOr<SizedShards::Ptr> {
    opened = true;
    return std::make_shared<const SizedShard>(SizedShard{size});
  });
  EXPECT_TRUE(got.ok() && (*got)->size == size);
  return opened;
}

TEST(UnpackedBudget, TheSumOfAllCachesIsBounded) {
  UnpackedBudget budget(100);
  {
    SizedShards a(80, 10, &budget), b(80, 10, &budget);
    for (uint64_t key = 0; key < 4; ++key) EXPECT_TRUE(Opens(&a, key, 20));
    EXPECT_EQ(budget.taken(), 80u);
    for (uint64_t key = 0; key < 4; ++key) EXPECT_TRUE(Opens(&b, key, 20));
    EXPECT_EQ(budget.taken(), 100u);
    EXPECT_EQ(a.bytes() + b.bytes(), 100u);
    // The least recently used shard made room: a's.
    EXPECT_EQ(b.bytes(), 80u);
    EXPECT_FALSE(Opens(&a, 3, 20));
    EXPECT_TRUE(Opens(&a, 0, 20)) << "b, used before a was, gives one up";
    EXPECT_EQ(a.bytes(), 40u);
    EXPECT_EQ(b.bytes(), 60u);
  }
  EXPECT_EQ(budget.taken(), 0u);
}

TEST(UnpackedBudget, WhatIsLargerThanAllIsKeptAlone) {
  UnpackedBudget budget(100);
  SizedShards a(1000, 10, &budget), b(1000, 10, &budget);
  EXPECT_TRUE(Opens(&a, 1, 500));
  EXPECT_FALSE(Opens(&a, 1, 500));
  EXPECT_EQ(budget.taken(), 500u);
  EXPECT_TRUE(Opens(&b, 1, 50));
  EXPECT_EQ(a.bytes(), 0u);
  EXPECT_EQ(budget.taken(), 50u);
}

TEST(UnpackedBudget, WhatCannotBeGivenUpLeavesNoRoom) {
  UnpackedBudget budget(100);
  SizedShards a(1000, 10, &budget);
  UnpackedShare share, other;
  EXPECT_TRUE(share.Take(&budget, 70));
  EXPECT_TRUE(Opens(&a, 1, 30));
  EXPECT_FALSE(other.Take(&budget, 40)) << "and what it could have had is gone";
  EXPECT_EQ(budget.taken(), 70u);
  EXPECT_TRUE(Opens(&a, 2, 50)) << "it is served, and not kept";
  EXPECT_TRUE(Opens(&a, 2, 50));
  EXPECT_EQ(a.bytes(), 0u);
  EXPECT_FALSE(Opens(&a, 3, 30) && Opens(&a, 3, 30));
}

// Threads of several caches, each in the others' way.
TEST(UnpackedBudget, ManyThreadsTakeAndGiveUp) {
  UnpackedBudget budget(64);
  {
    SizedShards caches[] = {{64, 8, &budget}, {64, 8, &budget}};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        for (uint64_t n = 0; n < 2000; ++n)
          Opens(&caches[(n + static_cast<uint64_t>(i)) % 2], n % 7, 16);
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(budget.taken(), 64u);
    EXPECT_EQ(budget.taken(), caches[0].bytes() + caches[1].bytes());
  }
  EXPECT_EQ(budget.taken(), 0u);
}

}  // namespace
}  // namespace leat::worker
