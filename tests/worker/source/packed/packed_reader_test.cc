// SPDX-License-Identifier: Apache-2.0
#include "worker/source/packed/packed_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>
#include <string>
#include <vector>

#include "tests/worker/temp_dir.h"

namespace leat::worker {
namespace {

constexpr size_t kFileBytes = 1 << 20;

struct Wanted {
  size_t file = 0;
  uint64_t offset = 0, size = 0;
};

class PackedReaderTest : public ::testing::Test {
 protected:
  PackedReaderTest() {
    std::mt19937 random(1);
    for (std::string& bytes : bytes_) {
      bytes.resize(kFileBytes);
      for (char& byte : bytes) byte = static_cast<char>(random());
      paths_.push_back(dir_.Write(std::to_string(paths_.size()), bytes));
      const auto file = storage_->Open(paths_.back());
      EXPECT_TRUE(file.ok()) << file.status();
      EXPECT_TRUE(
          files_.Add(paths_.back(), kFileBytes, (*file)->identity()).ok());
    }
  }

  // Reads all together; returns what each read, or its error.
  std::vector<absl::StatusOr<std::string>> Read(
      const std::vector<Wanted>& wanted) const {
    std::vector<std::string> memory;
    for (const Wanted& each : wanted) memory.emplace_back(each.size, '\0');
    std::vector<PackedRead> reads;
    for (size_t i = 0; i < wanted.size(); ++i)
      reads.push_back({.file = wanted[i].file,
                       .range = {wanted[i].offset, std::as_writable_bytes(
                                                       std::span(memory[i]))}});
    reader_.ReadMany(reads);
    std::vector<absl::StatusOr<std::string>> got;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (reads[i].status.ok())
        got.emplace_back(std::move(memory[i]));
      else
        got.emplace_back(reads[i].status);
    }
    return got;
  }
  std::string Expected(const Wanted& wanted) const {
    return bytes_[wanted.file].substr(wanted.offset, wanted.size);
  }

  // Writes other bytes, and leaves the file's time and size as they were.
  void ChangeUnseen(size_t file) {
    struct stat before;
    ASSERT_EQ(stat(paths_[file].c_str(), &before), 0);
    for (char& byte : bytes_[file]) byte = static_cast<char>(~byte);
    const int fd = open(paths_[file].c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(pwrite(fd, bytes_[file].data(), kFileBytes, 0),
              static_cast<ssize_t>(kFileBytes));
    const struct timespec times[] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(futimens(fd, times), 0);
    close(fd);
  }

  const TempDir dir_;
  std::string bytes_[2];
  std::vector<std::string> paths_;
  const std::unique_ptr<Storage> storage_ = *Storage::Create({});
  FileSet files_;
  const PackedReader reader_{&files_, storage_.get(), /*one_of_many=*/false};
};

TEST_F(PackedReaderTest, ReadsTogetherAreThoseOfTheBytes) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Wanted> wanted;
    const size_t count = 1 + random() % 100;
    while (wanted.size() < count) {
      Wanted next = {.file = random() % 8 == 0 ? size_t{1} : size_t{0},
                     .offset = random() % (kFileBytes - 40'000),
                     .size = random() % (random() % 4 == 0 ? 40'000 : 900)};
      if (!wanted.empty() && random() % 3 != 0) {  // the next, or nearly
        const Wanted& last = wanted.back();
        next.offset = last.offset + last.size + (random() % 4 == 0 ? 17 : 0);
        next.file = last.file;
      }
      if (next.offset + next.size <= kFileBytes) wanted.push_back(next);
    }
    const auto got = Read(wanted);
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_TRUE(got[i].ok()) << got[i].status();
      ASSERT_EQ(*got[i], Expected(wanted[i])) << round << " " << i;
    }
  }
}

// A block that was read ahead would have the bytes from before the change.
TEST_F(PackedReaderTest, AdjacentRangesCauseNoBlockToBeRead) {
  ASSERT_TRUE(Read({{0, 100, 50}, {0, 150, 60}, {0, 210, 70}})[2].ok());
  ChangeUnseen(0);
  const Wanted later = {0, 9000, 100};
  EXPECT_EQ(Read({later})[0].value(), Expected(later));
}

TEST_F(PackedReaderTest, RequestsThatFollowEachOtherReadABlock) {
  const Wanted later = {0, 9000, 100};
  const std::string before = Expected(later);
  ASSERT_TRUE(Read({{0, 100, 50}, {0, 150, 60}})[1].ok());
  ASSERT_TRUE(Read({{0, 210, 70}, {0, 280, 60}})[1].ok());
  ChangeUnseen(0);
  EXPECT_EQ(Read({later})[0].value(), before);
}

TEST_F(PackedReaderTest, AFileThatWasRewrittenIsAnErrorOfEachOfItsReads) {
  ASSERT_TRUE(Read({{0, 100, 50}})[0].ok());  // the reader has it open
  bytes_[0][0] = static_cast<char>(~bytes_[0][0]);
  const int fd = open(paths_[0].c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(pwrite(fd, bytes_[0].data(), kFileBytes, 0),
            static_cast<ssize_t>(kFileBytes));
  const struct timespec times[] = {{.tv_sec = 1, .tv_nsec = 0},
                                   {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(futimens(fd, times), 0);
  close(fd);
  const auto got =
      Read({{0, 0, 100}, {0, 100, 100}, {0, 70'000, 100}, {1, 500, 100}});
  for (size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(absl::IsFailedPrecondition(got[i].status())) << i;
  EXPECT_EQ(got[3].value(), Expected({1, 500, 100}));
}

TEST_F(PackedReaderTest, OneErrorIsNotTheOthers) {
  const std::vector<Wanted> wanted = {{0, 400'000, 100},
                                      {0, kFileBytes - 50, 50},
                                      {0, kFileBytes, 10},
                                      {0, 10, 30'000},
                                      {0, 500'000, 30'000}};
  const auto got = Read(wanted);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (i == 2)
      EXPECT_TRUE(absl::IsOutOfRange(got[i].status())) << got[i].status();
    else
      EXPECT_EQ(got[i].value(), Expected(wanted[i])) << i;
  }
}

}  // namespace
}  // namespace leat::worker
