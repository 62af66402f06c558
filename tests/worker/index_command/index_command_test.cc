// SPDX-License-Identifier: Apache-2.0
#include "worker/index_command/index_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "core/fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/temp_dir.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;

// Standard output is `path` for the lifetime of this object.
class OutputTo {
 public:
  explicit OutputTo(const char* path) {
    std::fflush(stdout);
    before_ = Fd(dup(STDOUT_FILENO));
    const Fd to(open(path, O_WRONLY | O_CLOEXEC));
    EXPECT_GE(dup2(to.get(), STDOUT_FILENO), 0);
  }
  ~OutputTo() {
    std::fflush(stdout);
    std::clearerr(stdout);
    dup2(before_.get(), STDOUT_FILENO);
  }
  OutputTo(const OutputTo&) = delete;
  OutputTo& operator=(const OutputTo&) = delete;

 private:
  Fd before_;
};

TEST(IndexCommand, AReportThatCannotBePrintedIsAnError) {
  TempDir dir;
  dir.Write("cats/1.jpg", "x");
  for (const auto& [output, code] :
       {std::pair{"/dev/null", 0}, std::pair{"/dev/full", 1}}) {
    std::string words[] = {"index", dir.path(), "--read", "0"};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    testing::internal::CaptureStderr();
    int got = -1;
    {
      const OutputTo to(output);
      got = RunIndexCommand(static_cast<int>(argv.size()), argv.data());
    }
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(got, code) << output << ": " << said;
    if (code != 0) {
      EXPECT_THAT(said, HasSubstr("standard output takes no more"));
    }
  }
}

}  // namespace
}  // namespace leat::worker
