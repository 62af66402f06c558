// SPDX-License-Identifier: Apache-2.0
//
// Local files that the budget closes between reads. A budget of 1 closes a file
// when another one is read.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <thread>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "tests/worker/source/storage/base/open_descriptors.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/storage/base/open_file_budget.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ClosedFile : public ::testing::Test {
 protected:
  std::shared_ptr<const StorageFile> Opened(const std::string& path) const {
    auto file = storage_->Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
  void Close() const { EXPECT_TRUE(ReadWhole(*other_, 9).ok()); }

  const TempDir dir_;
  const std::string path_ = dir_.Write("set/a", "0123456789");
  const std::unique_ptr<Storage> storage_ =
      *Storage::Create({.max_open_files = 1});
  const std::shared_ptr<const StorageFile> file_ = Opened(path_);
  const std::shared_ptr<const StorageFile> other_ =
      Opened(dir_.Write("other/b", "b"));
};

TEST_F(ClosedFile, IsOpenedByTheNextRead) {
  for (int i = 0; i < 3; ++i) {
    Close();
    EXPECT_EQ(OpenDescriptors(dir_.path()), 1u);
    EXPECT_EQ(ReadWhole(*file_, 100).value(), "0123456789");
    EXPECT_EQ(OpenDescriptors(dir_.path()), 1u);
    EXPECT_EQ(storage_->open_files()->open(), 1u);
  }
}

TEST_F(ClosedFile, ThatWasReplacedIsAnErrorThatNamesBothIdentities) {
  fs::rename(dir_.Write("new", "abc"), path_);
  Close();
  const absl::Status status = ReadWhole(*file_, 100).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(FaultOf(status), Fault::kObject);
  EXPECT_THAT(std::string(Message(status)), HasSubstr(path_));
  EXPECT_THAT(std::string(Message(status)), HasSubstr(file_->identity()));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("is size=3 "));
  // The present file has the name now.
  EXPECT_EQ(ReadWhole(*Opened(path_), 100).value(), "abc");
}

TEST_F(ClosedFile, ThatWasWrittenInPlaceIsTheSameError) {
  Close();
  dir_.Write("set/a", "01234567890");
  const absl::Status status = ReadWhole(*file_, 100).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(FaultOf(status), Fault::kObject);
}

TEST_F(ClosedFile, ThatIsGoneIsAsIfItHadNotBeenOpen) {
  Close();
  fs::rename(path_, path_ + ".gone");
  absl::Status status = ReadWhole(*file_, 100).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(FaultOf(status), Fault::kObject);
  fs::remove_all(dir_.path() + "/set");
  status = ReadWhole(*file_, 100).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(FaultOf(status), Fault::kWorker) << "a mount that is gone";
  fs::create_directories(path_);
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadWhole(*file_, 100).status()));
}

TEST_F(ClosedFile, ThatComesBackIsReadAgain) {
  fs::rename(path_, path_ + ".away");
  Close();
  EXPECT_FALSE(ReadWhole(*file_, 100).ok());
  fs::rename(path_ + ".away", path_);
  EXPECT_EQ(ReadWhole(*file_, 100).value(), "0123456789");
}

TEST_F(ClosedFile, MayOutliveItsStorage) {
  auto storage = *Storage::Create({.max_open_files = 1});
  const auto a = *storage->Open(path_);
  const auto b = *storage->Open(dir_.path() + "/other/b");
  storage = nullptr;
  EXPECT_EQ(ReadWhole(*a, 100).value(), "0123456789");
  EXPECT_EQ(ReadWhole(*b, 100).value(), "b");
}

// Threads read files while another one replaces some by files of other sizes. A
// read returns the bytes of the file that was opened, or that it has changed.
TEST_F(ClosedFile, NeverReturnsTheBytesOfAnother) {
  constexpr size_t kFiles = 12, kThreads = 4, kRounds = 300;
  const auto storage = *Storage::Create({.max_open_files = 4});
  const auto content = [](size_t i, size_t version) {
    return std::string(10 + i + 100 * version, static_cast<char>('a' + i));
  };
  std::vector<std::shared_ptr<const StorageFile>> files;
  for (size_t i = 0; i < kFiles; ++i)
    files.push_back(
        *storage->Open(dir_.Write(fmt::format("f{}", i), content(i, 0))));
  std::atomic<size_t> wrong{0}, changed{0};
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      std::minstd_rand random(static_cast<uint32_t>(thread) + 1);
      for (size_t round = 0; round < kRounds; ++round) {
        const size_t i = random() % kFiles;
        const auto text = ReadWhole(*files[i], 10'000);
        if (absl::IsFailedPrecondition(text.status()))
          ++changed;
        else if (!text.ok() || *text != content(i, 0))
          ++wrong;
      }
    });
  for (size_t i = 0; i < kFiles; i += 2)
    fs::rename(dir_.Write("new", content(i, 1 + i)),
               fmt::format("{}/f{}", dir_.path(), i));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_LE(OpenDescriptors(dir_.path()), 4u + 2u) << "and two of the fixture";
  for (size_t i = 1; i < kFiles; i += 2)
    EXPECT_EQ(ReadWhole(*files[i], 10'000).value(), content(i, 0));
  for (size_t i = 0; i < kFiles; i += 2) {
    // A file that is still open is the one that was opened.
    const auto text = ReadWhole(*files[i], 10'000);
    EXPECT_TRUE(text.ok() ? *text == content(i, 0)
                          : absl::IsFailedPrecondition(text.status()));
  }
}

}  // namespace
}  // namespace leat::worker
