// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <latch>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/worker/source/disk_cache/disk_cache_fixture.h"
#include "tests/worker/source/storage/remote/fixture.h"

namespace leat::worker {
namespace {

using Code = absl::StatusCode;

TEST_F(DiskCacheTest, WhatWasPutIsThereAlsoTheNextTime) {
  Open();
  EXPECT_FALSE(Has(*cache_, 1));
  for (uint64_t i = 0; i < 100; ++i) Put(*cache_, i);
  EXPECT_EQ(Count(100), 100);
  Open();
  EXPECT_EQ(Count(101), 100);
  for (uint64_t i = 100; i < 120; ++i) Put(*cache_, i);
  Open();
  EXPECT_EQ(Count(120), 120);
  EXPECT_EQ(cache_->stats().hits, 120u);
  EXPECT_EQ(cache_->stats().damaged, 0u);
}

TEST_F(DiskCacheTest, AnotherRangeOrVersionIsNotTheSame) {
  Open();
  Put(*cache_, 0);
  std::string bytes(999, '?');
  const auto into = std::as_writable_bytes(std::span(bytes.data(), 999));
  EXPECT_FALSE(cache_->Get(
      nullptr, RangeKey::Of("http://h/o size=1 etag=\"v\"", 0, 999), into));
  EXPECT_FALSE(cache_->Get(
      nullptr, RangeKey::Of("http://h/o size=1 etag=\"w\"", 0, 1000), into));
}

TEST_F(DiskCacheTest, TheBoundHoldsAndTheLowestRanksStay) {
  Open();
  for (uint64_t i = 0; i < 4000; ++i) {
    Put(*cache_, i);
    ASSERT_LE(cache_->stats().bytes, kDiskBytes);
  }
  EXPECT_LE(BytesOnDisk(), kDiskBytes);
  EXPECT_GE(BytesOnDisk(), kDiskBytes * 8 / 10);
  uint64_t highest = 0;
  for (uint64_t i = 0; i < 4000; ++i)
    if (Has(*cache_, i)) highest = std::max(highest, KeyOf(i).high);
  // All below it are there, except for a stratum's worth.
  int missing = 0;
  for (uint64_t i = 0; i < 4000; ++i)
    if (KeyOf(i).high < highest && !Has(*cache_, i)) ++missing;
  EXPECT_LT(missing, 4000 / 32);
  // A range that is too large is not kept.
  Put(*cache_, 9000, 40'000);
  EXPECT_FALSE(Has(*cache_, 9000, 40'000));
}

TEST_F(DiskCacheTest, ASmallerBoundTheNextTimeHoldsToo) {
  Open(4 * kDiskBytes);
  for (uint64_t i = 0; i < 3500; ++i) Put(*cache_, i);
  EXPECT_GT(BytesOnDisk(), 3 * kDiskBytes);
  Open(kDiskBytes);
  EXPECT_LE(BytesOnDisk(), kDiskBytes);
  EXPECT_GT(BytesOnDisk(), kDiskBytes * 8 / 10);
  for (uint64_t i = 4000; i < 6000; ++i) Put(*cache_, i);
  EXPECT_LE(BytesOnDisk(), kDiskBytes);
}

// As many ranges as fit can be hit, and no more.
TEST_F(DiskCacheTest, HitsAreTheShareThatFitsInAnyOrder) {
  constexpr uint64_t kEpochs = 3, kFit = 520, kSize = 2000;
  for (const double share : {0.10, 0.25, 0.50, 0.75, 0.90})
    for (const bool shuffled : {false, true}) {
      cache_.reset();
      std::filesystem::remove_all(path_);
      Open(kFit * (kSize + sizeof(DiskEntry)));
      const auto dataset = Dataset("one");
      const auto use = uses_.Begin(HashOf("one"));
      std::vector<uint64_t> order(static_cast<uint64_t>(kFit / share));
      std::iota(order.begin(), order.end(), 0);
      std::mt19937 random(1);
      uint64_t before = 0;
      for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
        if (epoch == 1) before = cache_->stats().hits;
        if (shuffled) std::shuffle(order.begin(), order.end(), random);
        for (const uint64_t i : order)
          if (!Has(*cache_, i, kSize, dataset)) Put(*cache_, i, kSize, dataset);
      }
      const double ratio = static_cast<double>(cache_->stats().hits - before) /
                           static_cast<double>(order.size() * (kEpochs - 1));
      EXPECT_GT(ratio, share - 0.02) << share << " shuffled: " << shuffled;
      EXPECT_LE(ratio, share + 0.001) << share << " shuffled: " << shuffled;
    }
}

TEST_F(DiskCacheTest, ADatasetThatIsReadGivesUpNothingForOthers) {
  Open();
  const auto read = Dataset("read"), idle = Dataset("idle");
  const auto use = uses_.Begin(HashOf("read"));
  for (uint64_t i = 0; i < 700; ++i) Put(*cache_, i, 1000, read);
  for (uint64_t i = 1000; i < 3000; ++i) Put(*cache_, i, 1000, idle);
  EXPECT_EQ(Count(700), 700);
  EXPECT_GT(Count(3000, 1000), 200);
  for (uint64_t i = 700; i < 950; ++i) Put(*cache_, i, 1000, read);
  EXPECT_EQ(Count(950), 950);
  EXPECT_LE(BytesOnDisk(), kDiskBytes);
}

TEST_F(DiskCacheTest, AfterARestartWhatWasWrittenFirstGoesFirst) {
  Open();
  for (uint64_t i = 0; i < 300; ++i) Put(*cache_, i, 1000, Dataset("a"));
  for (uint64_t i = 300; i < 600; ++i) Put(*cache_, i, 1000, Dataset("b"));
  for (uint64_t i = 600; i < 900; ++i) Put(*cache_, i, 1000, Dataset("c"));
  Open();
  EXPECT_EQ(Count(900), 900);
  const auto use = uses_.Begin(HashOf("c"));
  for (uint64_t i = 900; i < 1250; ++i) Put(*cache_, i, 1000, Dataset("c"));
  EXPECT_EQ(Count(1250, 600), 650);
  EXPECT_EQ(Count(600, 300), 300);
  EXPECT_LT(Count(300), 100);
}

TEST_F(DiskCacheTest, ManyThreadsUseItAtOnce) {
  Open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 1500; ++i) {
        const uint64_t range = random() % 1500;
        if (!Has(*cache_, range)) Put(*cache_, range);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache_->stats().damaged, 0u);
  EXPECT_LE(BytesOnDisk(), kDiskBytes);
}

TEST_F(DiskCacheTest, TheFirstRangesOfAnEmptyCacheAreAllKept) {
  constexpr int kThreads = 8;
  for (int round = 0; round < 50; ++round) {
    cache_.reset();
    std::filesystem::remove_all(path_);
    Open();
    std::latch together(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        together.arrive_and_wait();
        Put(*cache_, t);
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(Count(kThreads), kThreads);
  }
}

// Does the same below a Storage.
class KeptStorage : public RemoteStorage {
 protected:
  KeptStorage() { Again(); }
  void Again() {
    storage_.reset();
    StorageConfig config = Small();
    config.disk_cache = home_.path() + "/cache";
    config.disk_cache_bytes = kDiskBytes;
    Restart(config);
  }
};

TEST_F(KeptStorage, WhatWasReadIsNotAskedForAgain) {
  const std::string bytes = Pattern(5500);
  server_.Put("/o", bytes);
  std::string some;
  EXPECT_TRUE(Read(*Opened(Url("/o")), 100, 50).ok());
  EXPECT_EQ(ReadWhole(*Opened(Url("/o")), 6000).value(), bytes);
  EXPECT_EQ(server_.Count("GET"), 7);  // one, and six parts
  Again();
  EXPECT_EQ(ReadWhole(*Opened(Url("/o")), 6000).value(), bytes);
  const auto file = Opened(Url("/o"));
  ASSERT_TRUE(Read(*file, 100, 50, &some).ok());
  EXPECT_EQ(some, bytes.substr(100, 50));
  EXPECT_EQ(server_.Count("GET"), 7);
  EXPECT_EQ(storage_->counters().disk_hits, 7u);
  // Only those of several ranges that are missing.
  std::string a(50, '?'), b(10, '?');
  const ReadRange ranges[] = {{100, Bytes(a)}, {200, Bytes(b)}};
  ASSERT_TRUE(file->ReadRanges(ranges).ok());
  EXPECT_EQ(a, bytes.substr(100, 50));
  EXPECT_EQ(b, bytes.substr(200, 10));
  EXPECT_EQ(server_.Count("GET"), 8);
}

TEST_F(KeptStorage, AChangedObjectIsNeverMixedWithTheOldOne) {
  server_.Put("/o", std::string(2000, 'a'), "v1");
  const auto old = Opened(Url("/o"));
  ASSERT_TRUE(Read(*old, 0, 500).ok());
  server_.Put("/o", std::string(2000, 'b'), "v2");
  std::string some;
  ASSERT_TRUE(Read(*Opened(Url("/o")), 0, 500, &some).ok());
  EXPECT_EQ(some, std::string(500, 'b'));
  // The old version's bytes, if they are kept; nothing else in their place.
  ASSERT_TRUE(Read(*old, 0, 500, &some).ok());
  EXPECT_EQ(some, std::string(500, 'a'));
  EXPECT_EQ(Read(*old, 500, 500).code(), Code::kFailedPrecondition);
}

TEST_F(KeptStorage, WithoutAVersionNothingIsKept) {
  server_.Put("/o", std::string(2000, 'a'));
  server_.Always([](const ObjectServer::Request&, ObjectServer::Reply* reply) {
    std::erase_if(reply->headers, [](const auto& header) {
      return header.first == "ETag" || header.first == "Last-Modified";
    });
  });
  const auto file = Opened(Url("/o"));
  EXPECT_EQ(file->identity(), "size=2000");
  ASSERT_TRUE(Read(*file, 0, 500).ok());
  ASSERT_TRUE(Read(*file, 0, 500).ok());
  EXPECT_EQ(server_.Count("GET"), 2);
  EXPECT_EQ(storage_->counters().disk_bytes, 0u);
}

}  // namespace
}  // namespace leat::worker
