// SPDX-License-Identifier: Apache-2.0
#include "rpc/process/journal_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "core/log.h"
#include "gtest/gtest.h"

namespace leat::rpc {
namespace {

// Returns the name that systemd writes to JOURNAL_STREAM for stderr.
std::string StderrsName() {
  struct stat found {};
  EXPECT_EQ(fstat(STDERR_FILENO, &found), 0);
  return fmt::format("{}:{}", found.st_dev, found.st_ino);
}

TEST(JournalLog, LinesHaveAPriorityAndStayOneLine) {
  testing::internal::CaptureStderr();
  InitLog("leat-test", LogFormat::kText, spdlog::level::info);
  LogForJournal(StderrsName().c_str());
  LOG_INFO("job.created job={}", "a");
  LOG_WARN("job.late");
  LOG_ERROR("path={}", "a\n<0>b");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "<6>job.created job=a\n<4>job.late\n<3>path=a\\n<0>b\n");
}

TEST(JournalLog, AnotherStderrIsLeftAsItWas) {
  for (const char* stream : {static_cast<const char*>(nullptr), "", "1:1"}) {
    testing::internal::CaptureStderr();
    InitLog("leat-test", LogFormat::kText, spdlog::level::info);
    LogForJournal(stream);
    LOG_INFO("job.created job={}", "a");
    EXPECT_TRUE(testing::internal::GetCapturedStderr().ends_with(
        "Z info  leat-test job.created job=a\n"));
  }
  EXPECT_FALSE(IsJournal(-1, StderrsName().c_str()));
}

}  // namespace
}  // namespace leat::rpc
