// SPDX-License-Identifier: Apache-2.0
#include "server/store/state_directory.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::server {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class StateDirectoryTest : public testing::Test {
 protected:
  StateDirectoryTest() {
    std::string name = fs::temp_directory_path() / "leat-directory-XXXXXX";
    root_ = mkdtemp(name.data());
    state_ = root_ / "state";
    fs::create_directory(state_);
    std::ofstream(root_ / "precious") << "precious";
  }
  ~StateDirectoryTest() override { fs::remove_all(root_); }

  std::string Warnings() {
    testing::internal::CaptureStderr();
    EXPECT_TRUE(StateDirectory::Open(state_).ok());
    return testing::internal::GetCapturedStderr();
  }

  fs::path root_, state_;
};

TEST_F(StateDirectoryTest, WritesBeyondNoLink) {
  fs::create_symlink(root_ / "precious", state_ / "lock");
  EXPECT_FALSE(StateDirectory::Open(state_).ok());
  fs::remove(state_ / "lock");
  fs::create_symlink(root_ / "precious", state_ / "high-water");
  absl::StatusOr<StateDirectory> directory = StateDirectory::Open(state_);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_FALSE(directory->ReadHighWater().ok());
  EXPECT_FALSE(directory->WriteHighWater({.sequence = 1}).ok());
  std::string kept;
  std::ifstream(root_ / "precious") >> kept;
  EXPECT_EQ(kept, "precious");
}

TEST_F(StateDirectoryTest, WarnsWhereOthersCanReplaceTheState) {
  fs::permissions(state_, fs::perms(0770));
  EXPECT_THAT(Warnings(), Not(HasSubstr("state.replaceable")));
  fs::permissions(state_, fs::perms(0777));
  EXPECT_THAT(Warnings(), HasSubstr("state.replaceable"));
}

}  // namespace
}  // namespace leat::server
