// SPDX-License-Identifier: Apache-2.0
#include "client/cli/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/fd.h"
#include "core/status.h"
#include "gtest/gtest.h"

namespace leat::cli {
namespace {

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::filesystem::create_directories(folder_);
    EXPECT_EQ(mkfifo(pipe_.c_str(), 0600), 0);
  }
  ~FileTest() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = std::filesystem::temp_directory_path() /
                              fmt::format("leat-file-{}", getpid());
  const std::string pipe_ = folder_ + "/pipe";
};

TEST_F(FileTest, APipeIsReadAndItsWriterIsNotWaitedFor) {
  EXPECT_EQ(Message(ReadFile(pipe_, 10).status()),
            pipe_ + ": a named pipe without a writer, want a file");
  const Fd writer(open(pipe_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(write(writer.get(), "abcdef", 6), 6);
  EXPECT_EQ(ReadFile(pipe_, 2).value_or(""), "abc") << "one more than 2";
}

TEST_F(FileTest, WhatIsWrittenIsRead) {
  const std::string path = folder_ + "/x";
  ASSERT_TRUE(WriteFile(path, "abc").ok());
  EXPECT_EQ(ReadFile(path, 10).value_or(""), "abc");
  ASSERT_TRUE(WriteFile(path, "").ok());
  EXPECT_EQ(ReadFile(path, 10).value_or("?"), "");
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadFile(folder_, 10).status()));
}

}  // namespace
}  // namespace leat::cli
