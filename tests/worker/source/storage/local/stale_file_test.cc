// SPDX-License-Identifier: Apache-2.0
//
// Descriptors that their file server has forgotten (ESTALE). The test defines a
// pread, which the program's other parts call instead of the system's.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/source/storage/local/stale_reads.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/storage/storage.h"

std::atomic<int> leat::worker::stale_reads{0};

extern "C" ssize_t pread(int fd, void* into, size_t size, off_t at) {
  if (leat::worker::stale_reads > 0) {
    --leat::worker::stale_reads;
    errno = ESTALE;
    return -1;
  }
  return syscall(SYS_pread64, fd, into, size, at);
}

namespace leat::worker {
namespace {

class StaleFile : public ::testing::Test {
 protected:
  StaleFile() {
    dir_.Write("set/a", "abcdef");
    file_ = *storage_->Open(path_);
  }
  ~StaleFile() override { stale_reads = 0; }
  absl::Status Read(std::string* text) {
    text->assign(6, '\0');
    return file_->ReadAt(0, std::as_writable_bytes(std::span(*text)));
  }

  const TempDir dir_;
  const std::string path_ = dir_.path() + "/set/a";
  const std::unique_ptr<Storage> storage_ = *Storage::Create({});
  std::shared_ptr<const StorageFile> file_;
};

TEST_F(StaleFile, IsOpenedAgainOnce) {
  stale_reads = 1;
  std::string text;
  const absl::Status status = Read(&text);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(text, "abcdef");
  EXPECT_TRUE(Read(&text).ok());
}

// The reopened file replaces the old one under the descriptor from then on.
TEST_F(StaleFile, MovesToTheFileThatIsThere) {
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  std::filesystem::rename(path_, path_ + ".old");
  dir_.Write("set/a", "ABCDEF");
  const timespec times[2] = {info.st_atim, info.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  stale_reads = 1;
  std::string text;
  EXPECT_TRUE(Read(&text).ok());
  EXPECT_EQ(text, "ABCDEF");
  EXPECT_TRUE(Read(&text).ok());
  EXPECT_EQ(text, "ABCDEF");
}

TEST_F(StaleFile, ThatStaysStaleIsTheWorkersFault) {
  stale_reads = 2;
  std::string text;
  EXPECT_EQ(FaultOf(Read(&text)), Fault::kWorker);
}

TEST_F(StaleFile, ThatIsGoneIsTheObjects) {
  dir_.Write("set/b", "b");
  std::filesystem::remove(path_);
  stale_reads = 1;
  std::string text;
  EXPECT_EQ(FaultOf(Read(&text)), Fault::kObject);
  std::filesystem::remove_all(dir_.path() + "/set");
  stale_reads = 1;
  EXPECT_EQ(FaultOf(Read(&text)), Fault::kWorker) << "its folder is gone, too";
}

TEST_F(StaleFile, ThatIsAnotherFileNowIsTheObjects) {
  dir_.Write("set/a", "longer than before");
  stale_reads = 1;
  std::string text;
  const absl::Status status = Read(&text);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(FaultOf(status), Fault::kObject);
}

}  // namespace
}  // namespace leat::worker
