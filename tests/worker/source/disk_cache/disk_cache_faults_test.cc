// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "core/status.h"
#include "tests/worker/source/disk_cache/disk_cache_fixture.h"

namespace leat::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

TEST_F(DiskCacheTest, ItsFilesAreItsUsersOnly) {
  Open();
  Put(*cache_, 0);
  struct stat about;
  ASSERT_EQ(stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(Files(".data").front().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

// Anyone who can write there chooses what jobs train on.
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
}

TEST_F(DiskCacheTest, ADirectoryOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives a directory away";
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
  const auto cache = DiskCache::Open(In(path_));
  EXPECT_EQ(cache.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(cache.status())), HasSubstr("65534"));
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

TEST_F(DiskCacheTest, ADirectoryOfAnotherVersionIsEmptied) {
  Open();
  Put(*cache_, 1);
  cache_.reset();
  for (const char* name : {"/0000000000000001.data", "/0000000000000001.index"})
    std::ofstream(path_ + name) << "of a release before";
  // Entries of an unknown version make an empty segment.
  const std::string stem = path_ + "/" + std::string(64, '0') + "-00-";
  std::ofstream(stem + "00000000000000ff.data") << "bytes";
  std::ofstream(stem + "00000000000000ff.index")
      << "leatdc99" << std::string(40, 'x');
  std::ofstream(path_ + "/notes.txt") << "not ours at all";
  Open();
  EXPECT_TRUE(Has(*cache_, 1));
  EXPECT_EQ(Files(".data").size(), 1u);
  EXPECT_EQ(Files(".index").size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(path_ + "/notes.txt"));
}

// The child process has a user to whom permissions apply.
TEST_F(DiskCacheTest, ADirectoryThatCannotBeWrittenToIsAnError) {
  Open();
  Put(*cache_, 1);
  cache_.reset();
  std::filesystem::remove(path_ + "/lock");
  ASSERT_EQ(chmod(path_.c_str(), 0500), 0);
  ASSERT_EQ(chmod(dir_.path().c_str(), 0755), 0);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
  }
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(2);
    const absl::Status status = DiskCache::Open(In(path_)).status();
    _exit(absl::IsPermissionDenied(status) &&
                  absl::StrContains(status.message(), path_ + "/lock")
              ? 0
              : 1);
  }
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_EQ(ended, 0);
  ASSERT_EQ(chmod(path_.c_str(), 0700), 0);
}

TEST_F(DiskCacheTest, WhatIsDamagedIsAMiss) {
  Open();
  for (uint64_t i = 0; i < 20; ++i) Put(*cache_, i);
  {
    std::fstream data(FileOf(5, "data"),
                      std::ios::in | std::ios::out | std::ios::binary);
    data.put('!').put('?');
  }
  EXPECT_EQ(Count(20), 19);
  EXPECT_EQ(cache_->stats().damaged, 1u);
  int damaged = 0;
  while (Has(*cache_, damaged)) ++damaged;
  Put(*cache_, damaged);
  EXPECT_EQ(Count(20), 20);
  // One index has a damaged entry, and one an entry that was cut through.
  cache_.reset();
  std::filesystem::resize_file(
      FileOf(3, "index"), std::filesystem::file_size(FileOf(3, "index")) - 5);
  ASSERT_NE(FileOf(4, "index"), FileOf(3, "index"));
  {
    std::fstream file(FileOf(4, "index"),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(20);
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
  for (uint64_t i = 0; i < 600; ++i) Put(*cache_, i);
  cache_.reset();
  std::filesystem::resize_file(FileOf(1, "data"), 1);
  ASSERT_NE(FileOf(1, "data"), FileOf(2, "data"));
  std::filesystem::remove(FileOf(2, "index"));
  ASSERT_NE(FileOf(3, "data"), FileOf(2, "data"));
  std::filesystem::remove(FileOf(3, "data"));
  const size_t before = Files(".index").size();
  Open();
  const int left = Count(600);
  EXPECT_GT(left, 500);
  EXPECT_LT(left, 598);
  for (uint64_t i = 1; i < 4; ++i) EXPECT_FALSE(Has(*cache_, i)) << i;
  EXPECT_LT(Files(".index").size(), before) << "what is of no use is removed";
  EXPECT_EQ(Files(".index").size(), Files(".data").size());
  for (uint64_t i = 0; i < 600; ++i) Put(*cache_, i);
  EXPECT_EQ(Count(600), 600);
}

TEST_F(DiskCacheTest, SegmentsThatAreLinksAreNotFollowed) {
  Open();
  Put(*cache_, 1);
  cache_.reset();
  const std::string file = FileOf(1, "data"), away = dir_.path() + "/away";
  std::filesystem::rename(file, away);
  ASSERT_EQ(symlink(away.c_str(), file.c_str()), 0);
  Open();
  EXPECT_FALSE(Has(*cache_, 1));
  EXPECT_TRUE(std::filesystem::exists(away));
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
    // Writes in pieces; the last one does not fit whole.
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
  Open();  // the lock ended with the process
  EXPECT_GT(Count(3000), 100);
  EXPECT_EQ(cache_->stats().damaged, 0u);
  for (uint64_t i = 5000; i < 7000; ++i) Put(*cache_, i);
  EXPECT_LE(BytesOnDisk(), kDiskBytes);
}

}  // namespace
}  // namespace leat::worker
