// SPDX-License-Identifier: Apache-2.0
#include "worker/sample_cache.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/stored_image.h"

namespace leat::worker {
namespace {

using Owner = std::shared_ptr<const void>;

StoredSample Make(size_t bytes, int32_t label = 0) {
  auto owner = std::make_shared<std::vector<std::byte>>(bytes);
  StoredSample stored = StoredImage(*owner, label);
  stored.owner =
      std::make_shared<const std::pair<Owner, Owner>>(stored.owner, owner);
  return stored;
}

absl::StatusOr<StoredSample> Get(SampleCache& cache, uint64_t record,
                                 size_t bytes = 1000, bool keep = true) {
  return cache.Get({.dataset = 1, .record = record}, keep,
                   [&] { return Make(bytes, static_cast<int32_t>(record)); });
}

TEST(SampleCache, KeepsWhatWasRead) {
  SampleCache cache(1 << 20);
  EXPECT_EQ(LabelOf(Get(cache, 7)->fields), 7);
  EXPECT_EQ(LabelOf(Get(cache, 7)->fields), 7);
  EXPECT_EQ(cache.stats().hits, 1u);
  EXPECT_EQ(cache.stats().misses, 1u);
  EXPECT_EQ(cache.stats().records, 1u);
}

TEST(SampleCache, WhatIsNotOwnedIsServedButNotKept) {
  SampleCache cache(1 << 20);
  EXPECT_EQ(LabelOf(Get(cache, 7, 1000, false)->fields), 7);
  EXPECT_EQ(cache.stats().records, 0u);
}

TEST(SampleCache, DatasetsDoNotMix) {
  SampleCache cache(1 << 20);
  Get(cache, 7).IgnoreError();
  const auto other =
      cache.Get({.dataset = 2, .record = 7}, true, [] { return Make(1, 99); });
  EXPECT_EQ(LabelOf(other->fields), 99);
}

TEST(SampleCache, ErrorsAreNotKept) {
  SampleCache cache(1 << 20);
  const CacheKey key{.dataset = 1, .record = 1};
  EXPECT_TRUE(absl::IsNotFound(
      cache.Get(key, true, [] { return NotFound("gone"); }).status()));
  EXPECT_TRUE(cache.Get(key, true, [] { return Make(1); }).ok());
}

TEST(SampleCache, StaysWithinItsLimit) {
  SampleCache cache(100'000);
  std::minstd_rand random(1);
  for (int i = 0; i < 20'000; ++i) {
    Get(cache, random() % 500, 500 + random() % 3000).IgnoreError();
    ASSERT_LE(cache.stats().bytes, 100'000u);
  }
  EXPECT_GT(cache.stats().bytes, 80'000u);
}

TEST(SampleCache, ARecordLargerThanTheCacheIsServed) {
  SampleCache cache(1000);
  EXPECT_EQ(Get(cache, 1, 5000)->fields[0].bytes.size(), 5000u);
  EXPECT_EQ(cache.stats().bytes, 0u);
  SampleCache none(0);
  EXPECT_EQ(Get(none, 1, 5)->fields[0].bytes.size(), 5u);
}

// An LRU of half the dataset hits one time in eight when every epoch visits
// each record once, in random order.
TEST(SampleCache, RandomEpochsOverTwiceTheCacheHitMoreThanWithLru) {
  constexpr int kRecords = 2000, kEpochs = 12;
  SampleCache cache(kRecords / 2 * 1160);
  std::vector<uint64_t> order(kRecords);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(1);
  uint64_t hits_before = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    if (epoch == 4) hits_before = cache.stats().hits;
    std::shuffle(order.begin(), order.end(), random);
    for (const uint64_t record : order) Get(cache, record).IgnoreError();
  }
  const double hits = static_cast<double>(cache.stats().hits - hits_before) /
                      (kRecords * (kEpochs - 4));
  EXPECT_GT(hits, 0.15);
}

TEST(SampleCache, ThreadsThatMissTheSameRecordReadItOnce) {
  SampleCache cache(1 << 20);
  std::atomic<int> reads{0};
  std::latch started(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      started.arrive_and_wait();
      const auto sample = cache.Get({.dataset = 1, .record = 1}, true, [&] {
        ++reads;
        return Make(10, 5);
      });
      EXPECT_EQ(LabelOf(sample->fields), 5);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reads, 1);
}

TEST(SampleCache, ManyThreadsAgree) {
  SampleCache cache(200'000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::minstd_rand random(static_cast<uint32_t>(t + 1));
      for (int i = 0; i < 5000; ++i) {
        const uint64_t record = random() % 300;
        const auto sample = Get(cache, record, 1000 + record);
        ASSERT_EQ(LabelOf(sample->fields), static_cast<int32_t>(record));
        ASSERT_EQ(sample->fields[0].bytes.size(), 1000 + record);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache.stats().hits + cache.stats().misses, 20'000u);
}

}  // namespace
}  // namespace leat::worker
