// SPDX-License-Identifier: Apache-2.0
//
// The coordinator's script with other programs in its place.
#include "client/cli/clusters/slurm_scripts.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "client/cli/base/spawn.h"
#include "fmt/format.h"
#include "gtest/gtest.h"

namespace leat::cli {
namespace {

// Serves on any port, and on no certain one; writes down what it was asked for.
constexpr std::string_view kBusyPorts = R"sh(#!/bin/sh
echo "$2" >> asked
case $2 in *:0) echo n1:7 >&3 ;; *) exit 1 ;; esac
)sh";

class CoordinatorScriptTest : public ::testing::Test {
 protected:
  CoordinatorScriptTest() {
    std::filesystem::create_directories(dir_);
    Write("leat-coordinator", kBusyPorts);
    Write("leat", "#!/bin/sh\n");
    Write("script",
          CoordinatorScript({"cpu", 1, 2, {.dir = dir_, .listen = "n1"}}));
  }
  ~CoordinatorScriptTest() override { std::filesystem::remove_all(dir_); }

  void Write(const std::string& name, std::string_view text) {
    const std::filesystem::path path = std::filesystem::path(dir_) / name;
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  std::string File(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(dir_ + "/" + name).rdbuf();
    return text.str();
  }
  void Run() {
    const absl::StatusOr<Ended> ended =
        Spawn({"env", fmt::format("PATH={}:{}", dir_, getenv("PATH")), "bash",
               dir_ + "/script"},
              absl::Seconds(60));
    ASSERT_TRUE(ended.ok()) << ended.status();
    EXPECT_EQ(ended->exit_code, 0) << ended->err;
  }

  const std::string dir_ = std::filesystem::temp_directory_path() /
                           fmt::format("leat-slurm-scripts-test-{}", getpid());
};

TEST_F(CoordinatorScriptTest, ListensWhereItDidOrElsewhereIfThatIsTaken) {
  Run();
  EXPECT_EQ(File("asked"), "n1:0\n");
  EXPECT_EQ(File("last"), "n1:7\n");
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/address"));
  Run();
  EXPECT_EQ(File("asked"), "n1:0\nn1:7\nn1:0\n");
  // An address of another node is not taken.
  Write("last", "n2:7\n");
  Run();
  EXPECT_EQ(File("asked"), "n1:0\nn1:7\nn1:0\nn1:0\n");
}

}  // namespace
}  // namespace leat::cli
