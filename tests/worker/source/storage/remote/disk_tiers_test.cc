// SPDX-License-Identifier: Apache-2.0
//
// Entries that are found by record: forms get the room that records leave, and
// no caller waits for writing.
#include <cerrno>
#include <chrono>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "tests/worker/source/disk_cache/disk_cache_fixture.h"
#include "worker/source/disk_cache/writer.h"

namespace leat::worker {
namespace {

class DiskTiersTest : public DiskCacheTest {
 protected:
  DiskCache::DatasetPtr Forms(const char* of, int tier) {
    return cache_->OpenForms(HashOf(fmt::format("{} {}", of, tier)),
                             {.dataset = HashOf(of),
                              .name = of,
                              .tier = tier,
                              .form = tier == 1 ? "first" : "second"});
  }
  // Returns the key of a record's form in this dataset.
  static RangeKey FormKey(const DiskCache::DatasetPtr& dataset, uint64_t i) {
    return {.high = KeyOf(i).high, .low = RankOf(DigestOf(dataset), i)};
  }
  static Digest DigestOf(const DiskCache::DatasetPtr& dataset) {
    Digest key{};
    const void* const at = dataset.get();
    std::memcpy(key.data(), &at, sizeof at);
    return key;
  }
  void PutForm(const DiskCache::DatasetPtr& dataset, uint64_t i,
               size_t size = 1000) {
    const std::string bytes = Range(i, size);
    cache_->Put(dataset, FormKey(dataset, i), std::as_bytes(std::span(bytes)));
  }
  int CountForms(const DiskCache::DatasetPtr& dataset, uint64_t end) {
    int count = 0;
    for (uint64_t i = 0; i < end; ++i)
      count += cache_->SizeOf(FormKey(dataset, i)).has_value() ? 1 : 0;
    return count;
  }
};

TEST_F(DiskTiersTest, WhatIsPutIsFoundWithoutItsSize) {
  Open();
  const auto dataset = Forms("d", 1);
  PutForm(dataset, 3, 777);
  const auto found = cache_->Find(dataset, FormKey(dataset, 3));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(found->data()), 777),
            Range(3, 777));
  EXPECT_EQ(cache_->SizeOf(FormKey(dataset, 3)), 777u);
  EXPECT_FALSE(cache_->Find(dataset, FormKey(dataset, 4)).has_value());
  EXPECT_FALSE(cache_->Wants(dataset, FormKey(dataset, 3), 777));
  EXPECT_TRUE(cache_->Wants(dataset, FormKey(dataset, 4), 777));
  EXPECT_FALSE(cache_->Wants(dataset, FormKey(dataset, 4), kDiskBytes / 16));
  cache_->Refuse(dataset, FormKey(dataset, 3));
  EXPECT_FALSE(cache_->Find(dataset, FormKey(dataset, 3)).has_value());
  EXPECT_EQ(cache_->stats().damaged, 1u);
  EXPECT_TRUE(cache_->Wants(dataset, FormKey(dataset, 3), 777));
}

TEST_F(DiskTiersTest, FormsHaveWhatRecordsLeaveAndNoMore) {
  Open();
  const auto use = uses_.Begin(HashOf("d"));
  const auto records = Dataset("d"), first = Forms("d", 1),
             second = Forms("d", 2);
  for (uint64_t i = 0; i < 2000; ++i) PutForm(second, i);
  const int alone = CountForms(second, 2000);
  EXPECT_GT(alone, 800);
  for (uint64_t i = 0; i < 300; ++i) PutForm(first, i);
  EXPECT_EQ(CountForms(first, 300), 300);
  EXPECT_LT(CountForms(second, 2000), alone - 150);
  for (uint64_t i = 0; i < 600; ++i) Put(*cache_, i, 1000, records);
  int kept = 0;
  for (uint64_t i = 0; i < 600; ++i)
    kept += Has(*cache_, i, 1000, records) ? 1 : 0;
  EXPECT_EQ(kept, 600);
  EXPECT_EQ(CountForms(first, 300), 300);
  // No form takes a record's place, nor one of a lower tier.
  for (uint64_t i = 300; i < 3000; ++i) PutForm(second, i);
  EXPECT_EQ(CountForms(first, 300), 300);
  for (uint64_t i = 300; i < 3000; ++i) PutForm(first, i);
  for (uint64_t i = 0; i < 600; ++i)
    EXPECT_TRUE(Has(*cache_, i, 1000, records)) << i;
  EXPECT_LE(BytesOnDisk(), kDiskBytes);
  // Records alone fill the whole cache.
  for (uint64_t i = 600; i < 4000; ++i) Put(*cache_, i, 1000, records);
  EXPECT_EQ(CountForms(first, 3000) + CountForms(second, 3000), 0);
  EXPECT_LE(BytesOnDisk(), kDiskBytes);
  const auto stats = cache_->stats();
  ASSERT_EQ(stats.datasets.size(), 2u) << "and no dataset";
  EXPECT_EQ(stats.datasets[0].forms.size(), 2u);
}

TEST_F(DiskTiersTest, TwoDatasetsThatAreReadShareWhatFormsHave) {
  Open();
  const auto use = uses_.Begin(HashOf("a")), other = uses_.Begin(HashOf("b"));
  const auto a = Forms("a", 1), b = Forms("b", 1);
  for (uint64_t i = 0; i < 2000; ++i) PutForm(a, i);
  const int alone = CountForms(a, 2000);
  for (int epoch = 0; epoch < 3; ++epoch)
    for (uint64_t i = 0; i < 2000; ++i) {
      if (cache_->Wants(b, FormKey(b, i), 1000)) PutForm(b, i);
      if (cache_->Wants(a, FormKey(a, i), 1000)) PutForm(a, i);
    }
  EXPECT_GT(CountForms(a, 2000), alone / 4);
  EXPECT_GT(CountForms(b, 2000), alone / 4);
  EXPECT_LE(BytesOnDisk(), kDiskBytes);
}

TEST_F(DiskTiersTest, FormsOfADatasetThatNobodyReadsGoFirst) {
  Open();
  auto use = uses_.Begin(HashOf("a"));
  const auto a = Forms("a", 1), b = Forms("b", 2);
  for (uint64_t i = 0; i < 2000; ++i) PutForm(a, i);
  const int before = CountForms(a, 2000);
  for (uint64_t i = 0; i < 2000; ++i) PutForm(b, i);
  EXPECT_EQ(CountForms(a, 2000), before) << "nobody reads b";
  use.reset();
  clock_.Advance(DatasetUses::kRest + std::chrono::milliseconds(1));
  use = uses_.Begin(HashOf("b"));
  for (uint64_t i = 0; i < 2000; ++i) PutForm(b, i);
  EXPECT_LT(CountForms(a, 2000), before / 2);
  EXPECT_GT(CountForms(b, 2000), before / 2);
}

// Half of the forms fit: those of the lowest ranks.
TEST_F(DiskTiersTest, FormsOfTheLowestRanksStay) {
  Open();
  const auto use = uses_.Begin(HashOf("a"));
  const auto a = Forms("a", 1);
  for (int epoch = 0; epoch < 2; ++epoch)
    for (uint64_t i = 0; i < 2000; ++i)
      if (cache_->Wants(a, FormKey(a, i), 1000)) PutForm(a, i);
  int wrong = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    const double place = static_cast<double>(FormKey(a, i).high) / 0x1p64;
    const bool has = cache_->SizeOf(FormKey(a, i)).has_value();
    wrong += (place < 0.4 && !has) || (place > 0.6 && has);
  }
  EXPECT_LT(wrong, 40);
}

// --- DiskWriter --------------------------------------------------------------

class DiskWriterTest : public DiskCacheTest {
 protected:
  // Writes wait until `Go`.
  void OpenSlow() {
    DiskCacheOptions options = In(path_);
    options.write = [this](int fd, const void* from, size_t size,
                           off_t at) -> ssize_t {
      MutexLock lock(&mu_);
      ++begun_;
      changed_.NotifyAll();
      while (!go_) changed_.Wait(&mu_);
      return pwrite(fd, from, size, at);
    };
    auto cache = DiskCache::Open(options);
    ASSERT_TRUE(cache.ok()) << cache.status();
    shared_ = *std::move(cache);
  }
  void Go() {
    MutexLock lock(&mu_);
    go_ = true;
    changed_.NotifyAll();
  }
  void WaitBegun() {
    MutexLock lock(&mu_);
    while (begun_ == 0) changed_.Wait(&mu_);
  }
  static std::vector<std::byte> Bytes(uint64_t i, size_t size) {
    const std::string text = Range(i, size);
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
  static MonotonicTime Soon() {
    return Clock::Real().Now() + std::chrono::seconds(30);
  }

  Mutex mu_;
  CondVar changed_;
  int begun_ ABSL_GUARDED_BY(mu_) = 0;
  bool go_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<DiskCache> shared_;
};

TEST_F(DiskWriterTest, WritesBehindAndDropsWhatIsTooMuch) {
  OpenSlow();
  auto writer = DiskWriter::Start(shared_, 5000);
  ASSERT_TRUE(writer.ok()) << writer.status();
  // One is being written and does not end; the others wait.
  EXPECT_TRUE((*writer)->Offer(nullptr, KeyOf(0), Bytes(0, 1000)));
  WaitBegun();
  int taken = 0;
  for (uint64_t i = 1; i < 100; ++i)
    taken += (*writer)->Offer(nullptr, KeyOf(i), Bytes(i, 1000)) ? 1 : 0;
  EXPECT_EQ(taken, 3);
  EXPECT_EQ((*writer)->dropped(), 96u);
  // Reads do not wait for it either.
  EXPECT_FALSE(Has(*shared_, 0));
  EXPECT_FALSE((*writer)->WaitIdle(Clock::Real().Now()));
  Go();
  EXPECT_TRUE((*writer)->WaitIdle(Soon()));
  for (uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(Has(*shared_, i)) << i;
  EXPECT_FALSE(Has(*shared_, 4));
  EXPECT_FALSE((*writer)->Offer(nullptr, KeyOf(9), Bytes(9, 6000)));
  EXPECT_TRUE((*writer)->Offer(nullptr, KeyOf(9), Bytes(9, 1000)));
  EXPECT_TRUE((*writer)->WaitIdle(Soon()));
  EXPECT_TRUE(Has(*shared_, 9));
}

TEST_F(DiskWriterTest, EndsWithWhatIsBeingWrittenAndDropsTheRest) {
  OpenSlow();
  auto writer = DiskWriter::Start(shared_, 1 << 20);
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (uint64_t i = 0; i < 50; ++i)
    EXPECT_TRUE((*writer)->Offer(nullptr, KeyOf(i), Bytes(i, 1000)));
  WaitBegun();
  std::thread later([this] { Go(); });
  writer->reset();
  later.join();
  EXPECT_EQ(shared_->stats().damaged, 0u);
  int kept = 0;
  for (uint64_t i = 0; i < 50; ++i) kept += Has(*shared_, i) ? 1 : 0;
  EXPECT_GE(kept, 1);
}

}  // namespace
}  // namespace leat::worker
