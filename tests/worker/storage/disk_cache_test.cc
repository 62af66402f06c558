// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/disk_cache.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <latch>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/worker/storage/remote_fixture.h"

namespace leat::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

constexpr uint64_t kBytes = 1 << 20;  // so segments of 32 KiB

class DiskCacheTest : public testing::Test {
 protected:
  static DiskCacheOptions In(const std::string& directory,
                             uint64_t bytes = kBytes) {
    return {.directory = directory, .max_bytes = bytes, .write = nullptr};
  }
  void Open(uint64_t bytes = kBytes) {
    cache_.reset();
    auto cache = DiskCache::Open(In(path_, bytes));
    ASSERT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
  }
  // Range `i` of an object, by its bytes.
  static std::string Range(uint64_t i, size_t size = 1000) {
    std::string bytes(size, static_cast<char>(i));
    std::memcpy(bytes.data(), &i, sizeof i);
    return bytes;
  }
  static RangeKey KeyOf(uint64_t i, size_t size = 1000) {
    return RangeKey::Of("http://h/o size=1 etag=\"v\"", i * 1000, size);
  }
  static void Put(DiskCache& cache, uint64_t i, size_t size = 1000) {
    const std::string bytes = Range(i, size);
    cache.Put(KeyOf(i, size), std::as_bytes(std::span(bytes)));
  }
  // Whether it is there; then it is what was put.
  static bool Has(DiskCache& cache, uint64_t i, size_t size = 1000) {
    std::string bytes(size, '?');
    if (!cache.Get(KeyOf(i, size),
                   std::as_writable_bytes(std::span(bytes.data(), size))))
      return false;
    EXPECT_EQ(bytes, Range(i, size)) << i;
    return true;
  }
  int Count(uint64_t ranges) {
    int count = 0;
    for (uint64_t i = 0; i < ranges; ++i) count += Has(*cache_, i) ? 1 : 0;
    return count;
  }
  std::vector<std::string> Files(const std::string& kind) const {
    std::vector<std::string> files;
    for (const auto& each : std::filesystem::directory_iterator(path_))
      if (each.path().extension() == kind) files.push_back(each.path());
    std::sort(files.begin(), files.end());
    return files;
  }
  uint64_t BytesOnDisk() const {
    uint64_t bytes = 0;
    for (const auto& each : std::filesystem::directory_iterator(path_))
      bytes += each.file_size();
    return bytes;
  }

  TempDir dir_;
  const std::string path_ = dir_.path() + "/cache";
  std::unique_ptr<DiskCache> cache_;
};

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
  EXPECT_FALSE(
      cache_->Get(RangeKey::Of("http://h/o size=1 etag=\"v\"", 0, 999), into));
  EXPECT_FALSE(
      cache_->Get(RangeKey::Of("http://h/o size=1 etag=\"w\"", 0, 1000), into));
}

TEST_F(DiskCacheTest, ItsFilesAreItsUsersOnly) {
  Open();
  Put(*cache_, 0);
  struct stat about;
  ASSERT_EQ(stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(Files(".data").front().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

// Whoever can write there chooses what jobs train on.
TEST_F(DiskCacheTest, ADirectoryThatOthersMayHaveWrittenIsRefused) {
  const auto refused = [&](const std::string& path) {
    const absl::Status status = DiskCache::Open(In(path)).status();
    EXPECT_EQ(status.code(), Code::kFailedPrecondition) << status;
    return std::string(Message(status));
  };
  const std::string own = path_ + ".own";
  ASSERT_EQ(mkdir(own.c_str(), 0700), 0);
  for (const mode_t mode : {0770, 0702, 0777}) {
    ASSERT_EQ(chmod(own.c_str(), mode), 0);
    EXPECT_THAT(refused(own), HasSubstr("0700"));
  }
  ASSERT_EQ(chmod(own.c_str(), 0755), 0);
  ASSERT_EQ(symlink(own.c_str(), path_.c_str()), 0);
  EXPECT_THAT(refused(path_), HasSubstr("link"));
  EXPECT_THAT(refused(path_ + "/"), HasSubstr("link"));
  ASSERT_EQ(symlink("/dev/null", (own + "/lock").c_str()), 0);
  EXPECT_FALSE(DiskCache::Open(In(own)).ok()) << "a lock that is a link";
  ASSERT_EQ(unlink((own + "/lock").c_str()), 0);
  EXPECT_TRUE(DiskCache::Open(In(own)).ok());
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(own.c_str(), 65534, 65534), 0);
  EXPECT_THAT(refused(own), HasSubstr("65534"));
}

TEST_F(DiskCacheTest, ADirectoryIsOneProcesss) {
  Open();
  const auto second = DiskCache::Open(In(path_));
  EXPECT_EQ(second.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(second.status())),
              AllOf(HasSubstr(path_), HasSubstr("another process uses it")));
  cache_.reset();
  EXPECT_TRUE(DiskCache::Open(In(path_)).ok());
  EXPECT_EQ(DiskCache::Open(In(path_ + "/x/y")).status().code(),
            Code::kNotFound);
  EXPECT_EQ(DiskCache::Open(In(path_, 1000)).status().code(),
            Code::kInvalidArgument);
}

TEST_F(DiskCacheTest, TheBoundHoldsAndTheOldestGo) {
  Open();
  for (uint64_t i = 0; i < 4000; ++i) {
    Put(*cache_, i);
    ASSERT_LE(cache_->stats().bytes, kBytes);
  }
  EXPECT_LE(BytesOnDisk(), kBytes);
  EXPECT_GE(BytesOnDisk(), kBytes * 8 / 10);
  EXPECT_FALSE(Has(*cache_, 0));
  // What is too large for a segment is not kept.
  Put(*cache_, 9000, 40'000);
  EXPECT_FALSE(Has(*cache_, 9000, 40'000));
}

TEST_F(DiskCacheTest, ASmallerBoundTheNextTimeHoldsToo) {
  Open(4 * kBytes);
  for (uint64_t i = 0; i < 3500; ++i) Put(*cache_, i);
  EXPECT_GT(BytesOnDisk(), 3 * kBytes);
  Open(kBytes);
  EXPECT_LE(BytesOnDisk(), kBytes);
  EXPECT_FALSE(Has(*cache_, 0));
  EXPECT_TRUE(Has(*cache_, 3499));
  for (uint64_t i = 4000; i < 6000; ++i) Put(*cache_, i);
  EXPECT_LE(BytesOnDisk(), kBytes);
}

TEST_F(DiskCacheTest, ADatasetOfTwiceItsSizeDoesNotWashOut) {
  Open();
  int hits = 0;
  for (int epoch = 0; epoch < 4; ++epoch) {
    hits = 0;
    for (uint64_t i = 0; i < 2000; ++i) {
      if (Has(*cache_, i))
        ++hits;
      else
        Put(*cache_, i);
    }
  }
  EXPECT_GT(hits, 500);
}

TEST_F(DiskCacheTest, WhatIsDamagedIsAMiss) {
  Open();
  for (uint64_t i = 0; i < 20; ++i) Put(*cache_, i);
  {
    std::fstream data(Files(".data").front(),
                      std::ios::in | std::ios::out | std::ios::binary);
    data.seekp(5500);
    data.put('!').put('?');
  }
  EXPECT_EQ(Count(20), 19);
  EXPECT_EQ(cache_->stats().damaged, 1u);
  EXPECT_FALSE(Has(*cache_, 5));
  Put(*cache_, 5);
  EXPECT_EQ(Count(20), 20);
  // Of an index a damaged entry, and one that was cut through.
  cache_.reset();
  const std::string index = Files(".index").front();
  std::filesystem::resize_file(index, std::filesystem::file_size(index) - 5);
  {
    std::fstream file(index, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(3 * 48 + 20);
    file.put('!');
  }
  Open();
  EXPECT_EQ(Count(20), 18);
  for (uint64_t i = 0; i < 30; ++i) Put(*cache_, i);
  Open();
  EXPECT_EQ(Count(30), 30);
}

TEST_F(DiskCacheTest, WhatIsCutOffOrGoneIsAMiss) {
  Open();
  for (uint64_t i = 0; i < 100; ++i) Put(*cache_, i);
  cache_.reset();
  const auto data = Files(".data");
  ASSERT_GE(data.size(), 3u);
  std::filesystem::resize_file(data[0], 4500);
  std::filesystem::remove(Files(".index")[1]);
  std::ofstream(path_ + "/0000000000000abc.data") << "no segment of ours";
  std::ofstream(path_ + "/notes.txt") << "not ours at all";
  Open();
  const int left = Count(100);
  EXPECT_GT(left, 20);
  EXPECT_LT(left, 80);
  EXPECT_TRUE(Has(*cache_, 3));
  EXPECT_FALSE(Has(*cache_, 4));
  for (uint64_t i = 0; i < 100; ++i) Put(*cache_, i);
  EXPECT_EQ(Count(100), 100);
  EXPECT_TRUE(std::filesystem::exists(path_ + "/notes.txt"));
}

TEST_F(DiskCacheTest, AFullDiskEndsTheKeepingAndNothingElse) {
  DiskCacheOptions options = In(path_);
  std::atomic<int> left = 30'000;
  options.write = [&](int fd, const void* from, size_t size,
                      off_t at) -> ssize_t {
    if (left <= 0) {
      errno = ENOSPC;
      return -1;
    }
    // In pieces, the last of which does not fit whole.
    size = std::min<size_t>(size, 700);
    size = std::min<size_t>(size, static_cast<size_t>(left));
    left -= static_cast<int>(size);
    return pwrite(fd, from, size, at);
  };
  cache_ = *DiskCache::Open(options);
  for (uint64_t i = 0; i < 100; ++i) Put(*cache_, i);
  const int kept = Count(100);
  EXPECT_GT(kept, 20);
  EXPECT_LE(kept, 30);
  left = 1'000'000;
  Put(*cache_, 99);
  EXPECT_FALSE(Has(*cache_, 99));  // until it starts again
  cache_.reset();
  Open();
  EXPECT_EQ(Count(100), kept);
  Put(*cache_, 99);
  EXPECT_TRUE(Has(*cache_, 99));
}

TEST_F(DiskCacheTest, AProcessThatIsKilledLeavesItValid) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto cache = DiskCache::Open(In(path_));
    if (!cache.ok()) _exit(1);
    for (uint64_t i = 0;; ++i) {
      Put(**cache, i % 3000);
      if (i == 2000 && write(ready[1], "x", 1) != 1) _exit(1);
    }
  }
  close(ready[1]);
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  Open();  // the lock went with the process
  EXPECT_GT(Count(3000), 100);
  EXPECT_EQ(cache_->stats().damaged, 0u);
  for (uint64_t i = 5000; i < 7000; ++i) Put(*cache_, i);
  EXPECT_LE(BytesOnDisk(), kBytes);
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
  EXPECT_LE(BytesOnDisk(), kBytes);
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

// The same below a Storage.
class KeptStorage : public RemoteStorage {
 protected:
  KeptStorage() { Again(); }
  void Again() {
    storage_.reset();
    StorageConfig config = Small();
    config.disk_cache = home_.path() + "/cache";
    config.disk_cache_bytes = kBytes;
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
  // Of several ranges only those that are missing.
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
  // The old version's bytes, where they are kept; nothing else in their place.
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
