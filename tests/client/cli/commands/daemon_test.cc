// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/daemon.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RunDaemonTest : public ::testing::Test {
 protected:
  RunDaemonTest()
      : folder_(std::filesystem::temp_directory_path() /
                fmt::format("leat-daemon-{}", getpid())) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "leat-worker") << "#!/bin/sh\n";
    std::filesystem::permissions(folder_ / "leat-worker",
                                 std::filesystem::perms::owner_all);
    environment_.program_dirs = {"/no/such/folder", folder_};
    environment_.spawn = [this](const std::vector<std::string>& argv,
                                absl::Duration, const auto&) {
      ran_ = argv;
      return ended_;
    };
  }
  ~RunDaemonTest() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<Ended> Run(const std::string& daemon,
                            std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"index", "/data"});
    CommandLine line;
    EXPECT_TRUE(line.Parse(flags).ok());
    return RunDaemon(Session(line, environment_), daemon, {"index"},
                     absl::Seconds(1), nullptr);
  }

  const std::filesystem::path folder_;
  Environment environment_;
  std::vector<std::string> ran_;
  absl::StatusOr<Ended> ended_ = Ended{0, "", ""};
};

TEST_F(RunDaemonTest, TheProgramsFoldersAreSearchedAndThenThePath) {
  ASSERT_TRUE(Run("leat-worker").ok());
  EXPECT_THAT(ran_, ElementsAre(folder_ / "leat-worker", "index"));
  ASSERT_TRUE(Run("leat-coordinator").ok());
  EXPECT_THAT(ran_, ElementsAre("leat-coordinator", "index"));
  ASSERT_TRUE(Run("leat-worker", {"--daemon-dir", "/opt"}).ok());
  EXPECT_THAT(ran_, ElementsAre("/opt/leat-worker", "index"));
}

TEST_F(RunDaemonTest, AMissingProgramNamesTheFlagAndTheFoldersThatWereTried) {
  ended_ = NotFound("there is no program");
  environment_.program_dirs = {"/a", "/b"};
  EXPECT_EQ(Message(Run("leat-worker").status()),
            "this command runs leat-worker, which is neither in /a nor in /b "
            "nor on the PATH; --daemon-dir names its folder");
  EXPECT_EQ(Message(Run("leat-worker", {"--daemon-dir", "/opt"}).status()),
            "--daemon-dir /opt: want a folder that holds leat-worker");
  environment_.program_dirs.clear();
  EXPECT_THAT(Message(Run("leat-worker").status()),
              HasSubstr("neither beside leat nor on the PATH"));
}

}  // namespace
}  // namespace leat::cli
