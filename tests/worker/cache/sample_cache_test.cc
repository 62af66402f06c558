// SPDX-License-Identifier: Apache-2.0
#include "worker/cache/sample_cache.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/image/base/stored_image.h"

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

// A cache, and one dataset of it.
class OneDataset {
 public:
  explicit OneDataset(uint64_t limit_bytes, const char* name = "one")
      : cache(limit_bytes, &uses, clock), dataset(Open(name)) {}

  SampleCache::DatasetPtr Open(const char* name) {
    return cache.Open(HashOf(name), std::string("id ") + name, name);
  }
  absl::StatusOr<StoredSample> Get(uint64_t record, size_t bytes = 1000,
                                   bool keep = true) {
    return GetOf(dataset, record, bytes, keep);
  }
  absl::StatusOr<StoredSample> GetOf(const SampleCache::DatasetPtr& of,
                                     uint64_t record, size_t bytes = 1000,
                                     bool keep = true,
                                     Duration read_time = Duration(0)) {
    return cache.Get(
        of, {.number = record, .shard = static_cast<uint32_t>(record % 10)},
        keep, [&] {
          if (read_time > Duration(0)) clock.Advance(read_time);
          return Make(bytes, static_cast<int32_t>(record));
        });
  }
  std::vector<uint64_t> KeptOf(const SampleCache::DatasetPtr& of,
                               uint64_t records) const {
    std::vector<uint64_t> kept;
    for (uint64_t i = 0; i < records; ++i)
      if (cache.Contains(of, i)) kept.push_back(i);
    return kept;
  }
  void Pass(const SampleCache::DatasetPtr& of, uint64_t records) {
    for (uint64_t i = 0; i < records; ++i) GetOf(of, i).IgnoreError();
  }

  FakeClock clock;
  DatasetUses uses{clock};
  SampleCache cache;
  SampleCache::DatasetPtr dataset;
};

constexpr uint64_t kCost = 1004 + SampleCache::kEntryBytes;  // of 1000 bytes

TEST(SampleCache, KeepsWhatWasRead) {
  OneDataset one(1 << 20);
  EXPECT_EQ(LabelOf(one.Get(7)->fields), 7);
  EXPECT_EQ(LabelOf(one.Get(7)->fields), 7);
  EXPECT_EQ(one.cache.stats().hits, 1u);
  EXPECT_EQ(one.cache.stats().misses, 1u);
  EXPECT_EQ(one.cache.stats().records, 1u);
  EXPECT_EQ(one.cache.stats().bytes, kCost);
}

TEST(SampleCache, WhatIsNotOwnedIsServedButNotKept) {
  OneDataset one(1 << 20);
  EXPECT_EQ(LabelOf(one.Get(7, 1000, false)->fields), 7);
  EXPECT_EQ(one.cache.stats().records, 0u);
}

TEST(SampleCache, DatasetsDoNotMix) {
  OneDataset one(1 << 20);
  one.Get(7).IgnoreError();
  const auto other = one.cache.Get(one.Open("two"), {.number = 7}, true,
                                   [] { return Make(1, 99); });
  EXPECT_EQ(LabelOf(other->fields), 99);
  EXPECT_EQ(one.Open("one"), one.dataset);
}

TEST(SampleCache, ErrorsAreNotKept) {
  OneDataset one(1 << 20);
  const SampleCache::Record record = {.number = 1};
  EXPECT_TRUE(absl::IsNotFound(
      one.cache.Get(one.dataset, record, true, [] { return NotFound("gone"); })
          .status()));
  EXPECT_TRUE(
      one.cache.Get(one.dataset, record, true, [] { return Make(1); }).ok());
}

TEST(SampleCache, StaysWithinItsLimit) {
  OneDataset one(100'000);
  std::minstd_rand random(1);
  for (int i = 0; i < 20'000; ++i) {
    one.Get(random() % 500, 500 + random() % 3000).IgnoreError();
    ASSERT_LE(one.cache.stats().bytes, 100'000u);
  }
  EXPECT_GT(one.cache.stats().bytes, 90'000u);
}

TEST(SampleCache, ARecordLargerThanTheCacheIsServed) {
  OneDataset one(1000);
  EXPECT_EQ(one.Get(1, 5000)->fields[0].bytes.size(), 5000u);
  EXPECT_EQ(one.cache.stats().bytes, 0u);
  // And takes no other record's place.
  one.Get(2, 100).IgnoreError();
  one.Get(1, 5000).IgnoreError();
  EXPECT_TRUE(one.cache.Contains(one.dataset, 2));
  OneDataset none(0);
  EXPECT_EQ(none.Get(1, 5)->fields[0].bytes.size(), 5u);
  EXPECT_EQ(none.cache.stats().records, 0u);
}

// Returns the hit ratio of epochs 2 to 6, with memory for a share of the
// records.
double HitRatio(double share, bool shuffled) {
  constexpr int kRecords = 4000, kEpochs = 6;
  OneDataset one(static_cast<uint64_t>(share * kRecords * kCost));
  const auto use = one.uses.Begin(HashOf("one"));
  std::vector<uint64_t> order(kRecords);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(1);
  uint64_t before = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    if (epoch == 1) before = one.cache.stats().hits;
    if (shuffled) std::shuffle(order.begin(), order.end(), random);
    for (const uint64_t record : order) one.Get(record).IgnoreError();
  }
  return static_cast<double>(one.cache.stats().hits - before) /
         (kRecords * (kEpochs - 1));
}

// As many records as fit can be hit, and no more.
TEST(SampleCache, HitsAreTheShareThatFitsInAnyOrder) {
  for (const double share : {0.10, 0.25, 0.50, 0.75, 0.90})
    for (const bool shuffled : {false, true}) {
      const double ratio = HitRatio(share, shuffled);
      EXPECT_GT(ratio, share - 0.02) << share << " shuffled: " << shuffled;
      EXPECT_LE(ratio, share + 0.001) << share << " shuffled: " << shuffled;
    }
}

// Owners of one shard then keep the same records, and so does one that comes
// late.
TEST(SampleCache, WhatIsKeptDependsOnNoOrder) {
  constexpr uint64_t kRecords = 1000;
  std::vector<uint64_t> first;
  for (const uint32_t seed : {1, 2, 3}) {
    OneDataset one(kRecords / 3 * kCost);
    std::vector<uint64_t> order(kRecords);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    for (const uint64_t record : order) one.Get(record).IgnoreError();
    const std::vector<uint64_t> kept = one.KeptOf(one.dataset, kRecords);
    EXPECT_EQ(kept.size(), kRecords / 3);
    if (first.empty()) first = kept;
    EXPECT_EQ(kept, first);
  }
}

TEST(SampleCache, NothingIsGivenUpWhileTheDatasetIsReadForAnIdleOne) {
  OneDataset one(100 * kCost);
  const auto use = one.uses.Begin(HashOf("one"));
  one.Pass(one.dataset, 100);
  const auto idle = one.Open("idle");
  one.Pass(idle, 100);
  EXPECT_EQ(one.KeptOf(one.dataset, 100).size(), 100u);
  EXPECT_EQ(one.KeptOf(idle, 100).size(), 0u);
}

TEST(SampleCache, TheDatasetWhoseUseEndedFirstIsForgottenFirst) {
  OneDataset one(100 * kCost);
  const auto second = one.Open("second"), third = one.Open("third");
  auto use = one.uses.Begin(HashOf("one"));
  auto use_of_second = one.uses.Begin(HashOf("second"));
  one.Pass(one.dataset, 50);
  one.Pass(second, 50);
  use_of_second.reset();
  one.clock.Advance(std::chrono::seconds(1));
  use.reset();
  // They rest: a third job has its share of them, a third of all.
  const auto use_of_third = one.uses.Begin(HashOf("third"));
  one.Pass(third, 40);
  EXPECT_EQ(one.KeptOf(third, 40).size(), 33u);
  EXPECT_GE(one.KeptOf(one.dataset, 50).size(), 33u);
  EXPECT_GE(one.KeptOf(second, 50).size(), 33u);
  one.clock.Advance(DatasetUses::kRest);
  one.Pass(third, 60);
  EXPECT_EQ(one.KeptOf(third, 60).size(), 60u);
  EXPECT_GE(one.KeptOf(one.dataset, 50).size(), 33u);
  EXPECT_LT(one.KeptOf(second, 50).size(), 10u);
  one.Pass(third, 100);
  EXPECT_EQ(one.KeptOf(third, 100).size(), 100u);
}

// A's records take three times as long to read, and both are read equally
// often.
TEST(SampleCache, JobsHaveSharesByWhatTheirReadsCost) {
  OneDataset one(100 * kCost);
  const auto other = one.Open("other");
  const auto use = one.uses.Begin(HashOf("one"));
  const auto use_of_other = one.uses.Begin(HashOf("other"));
  for (int round = 0; round < 12; ++round) {
    for (uint64_t i = 0; i < 200; ++i) {
      one.GetOf(one.dataset, i, 1000, true, std::chrono::milliseconds(30))
          .IgnoreError();
      one.GetOf(other, i, 1000, true, std::chrono::milliseconds(10))
          .IgnoreError();
    }
    one.clock.Advance(CacheShares::kPeriod);
  }
  // 1/4 of the half, and 3/4 of what is left.
  EXPECT_NEAR(one.KeptOf(one.dataset, 200).size(), 69, 3);
  EXPECT_NEAR(one.KeptOf(other, 200).size(), 31, 3);
}

TEST(SampleCache, WhatOthersLeaveIsUsedAndGrowsBack) {
  OneDataset one(100 * kCost);
  const auto use = one.uses.Begin(HashOf("one"));
  one.Pass(one.dataset, 200);
  EXPECT_EQ(one.KeptOf(one.dataset, 200).size(), 100u);
  const auto other = one.Open("other");
  {
    const auto use_of_other = one.uses.Begin(HashOf("other"));
    one.Pass(other, 30);
    EXPECT_EQ(one.KeptOf(other, 30).size(), 30u);
    EXPECT_EQ(one.KeptOf(one.dataset, 200).size(), 70u);
    one.Pass(one.dataset, 200);
    EXPECT_EQ(one.KeptOf(other, 30).size(), 30u);
  }
  one.clock.Advance(DatasetUses::kRest);
  one.Pass(one.dataset, 200);
  one.Pass(one.dataset, 200);
  EXPECT_EQ(one.KeptOf(other, 30).size(), 0u);
  EXPECT_EQ(one.KeptOf(one.dataset, 200).size(), 100u);
}

// Records' shards are their last digits.
TEST(SampleCache, RecordsOfShardsThatMovedAwayMakeRoom) {
  OneDataset one(100 * kCost);
  const auto use = one.uses.Begin(HashOf("one"));
  one.Pass(one.dataset, 100);
  std::vector<bool> owned(10, true);
  for (int i = 0; i < 5; ++i) owned[i] = false;
  one.cache.SetOwned("another's id", std::vector<bool>(10));
  one.cache.SetOwned("id one", owned);
  EXPECT_EQ(one.cache.stats().records, 100u) << "nobody wants the room yet";
  for (uint64_t i = 105; i < 150; ++i)
    one.Get(i % 10 < 5 ? i + 5 : i).IgnoreError();
  EXPECT_EQ(one.cache.stats().records, 75u);
  for (const uint64_t record : one.KeptOf(one.dataset, 150))
    EXPECT_GE(record % 10, 5u);
}

TEST(SampleCache, TellsWhatItKeepsByDataset) {
  OneDataset one(100 * kCost);
  const auto other = one.Open("other");
  one.Pass(other, 3);
  one.Pass(one.dataset, 5);
  one.Pass(other, 3);
  const SampleCache::Stats stats = one.cache.stats();
  ASSERT_EQ(stats.datasets.size(), 2u);
  EXPECT_EQ(stats.datasets[0].name, "one");
  EXPECT_EQ(stats.datasets[0].entries, 5u);
  EXPECT_EQ(stats.datasets[0].bytes, 5 * kCost);
  EXPECT_EQ(stats.datasets[1].hits, 3u);
  EXPECT_EQ(stats.datasets[1].misses, 3u);
}

TEST(SampleCache, DatasetsThatNobodyHoldsAreForgotten) {
  OneDataset one(1 << 20);
  for (size_t i = 0; i < 2 * SampleCache::kMaxDatasets; ++i)
    one.GetOf(one.Open(std::to_string(i).c_str()), 1, 10).IgnoreError();
  one.Get(1).IgnoreError();
  const SampleCache::Stats stats = one.cache.stats();
  EXPECT_LE(stats.datasets.size(), SampleCache::kMaxDatasets);
  EXPECT_EQ(stats.misses, 2 * SampleCache::kMaxDatasets + 1);
  EXPECT_TRUE(one.cache.Contains(one.dataset, 1));
}

// The first thread reads until the others wait for its result.
class SharedRead {
 public:
  // Returns the results of four threads.
  std::vector<absl::StatusOr<StoredSample>> Run(
      OneDataset& one, const absl::StatusOr<StoredSample>& read) {
    std::vector<absl::StatusOr<StoredSample>> got(4, absl::UnknownError(""));
    std::vector<std::thread> threads;
    std::latch reading(1), asked(3);
    for (size_t t = 0; t < 4; ++t) {
      if (t == 1) reading.wait();
      threads.emplace_back([&, t] {
        if (t > 0) asked.count_down();
        got[t] = one.cache.Get(one.dataset, {.number = 1}, true, [&] {
          ++reads;
          if (t == 0) reading.count_down();
          asked.wait();
          return read;
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
    return got;
  }
  std::atomic<int> reads{0};
};

TEST(SampleCache, ThreadsThatMissTheSameRecordReadItOnce) {
  OneDataset one(1 << 20);
  SharedRead shared;
  for (const auto& sample : shared.Run(one, Make(10, 5)))
    EXPECT_EQ(LabelOf(sample->fields), 5);
  EXPECT_EQ(shared.reads, 1);
  EXPECT_EQ(one.cache.stats().hits, 3u);
}

TEST(SampleCache, ThreadsThatMissTheSameRecordGetTheSameError) {
  OneDataset one(1 << 20);
  SharedRead shared;
  for (const auto& sample : shared.Run(one, NotFound("gone")))
    EXPECT_TRUE(absl::IsNotFound(sample.status()));
  EXPECT_EQ(one.cache.stats().records, 0u);
}

TEST(SampleCache, ManyThreadsAgree) {
  OneDataset one(200'000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const auto dataset = one.Open(t % 2 == 0 ? "one" : "other");
      std::minstd_rand random(static_cast<uint32_t>(t + 1));
      for (int i = 0; i < 5000; ++i) {
        const uint64_t record = random() % 300;
        const auto sample = one.GetOf(dataset, record, 1000 + record);
        ASSERT_EQ(LabelOf(sample->fields), static_cast<int32_t>(record));
        ASSERT_EQ(sample->fields[0].bytes.size(), 1000 + record);
        if (i % 500 == 0)
          one.cache.SetOwned("id one", std::vector<bool>(10, i % 1000 == 0));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(one.cache.stats().hits + one.cache.stats().misses, 20'000u);
  EXPECT_LE(one.cache.stats().bytes, 200'000u);
}

}  // namespace
}  // namespace leat::worker
