// SPDX-License-Identifier: Apache-2.0
//
// A folder of this process that says of itself that it is NFS's: statfs(2) is
// replaced.
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/source.h"

namespace {

std::string& NetworkFolder() {
  static std::string& folder = *new std::string;
  return folder;
}

}  // namespace

extern "C" int statfs(const char* path, struct statfs* about) noexcept {
  const int result = static_cast<int>(syscall(SYS_statfs, path, about));
  const std::string& folder = NetworkFolder();
  if (result == 0 && !folder.empty() &&
      std::string_view(path).starts_with(folder))
    about->f_type = 0x6969;
  return result;
}

namespace leat::worker {
namespace {

class ReadsWaitTest : public testing::Test {
 protected:
  ReadsWaitTest() {
    network_.Write("k/a.jpg", "a");
    NetworkFolder() = network_.path();
  }
  ~ReadsWaitTest() override { NetworkFolder().clear(); }

  static bool Waits(const Node& reader) {
    const auto index = BuildIndex(reader, {});
    EXPECT_TRUE(index.ok()) << index.status();
    const auto source = OpenSource(reader, index->blob, {});
    EXPECT_TRUE(source.ok()) << source.status();
    return ReadsWait(reader, **source);
  }

  const TempDir network_, local_;
};

TEST_F(ReadsWaitTest, AFolderOnANetworkWaits) {
  EXPECT_TRUE(Waits({.op = "readers.image_folder",
                     .inputs = {},
                     .args = {{"path", network_.path()}}}));
  local_.Write("k/a.jpg", "a");
  EXPECT_FALSE(Waits({.op = "readers.image_folder",
                      .inputs = {},
                      .args = {{"path", local_.path()}}}));
}

// statfs does not know the pattern.
TEST_F(ReadsWaitTest, FilesOfAPatternOnANetworkWait) {
  const auto numbers = [](const std::string& path) {
    return Node{.op = "readers.tokens",
                .inputs = {},
                .args = {{"files", std::vector<std::string>{path}},
                         {"dtype", "uint8"}}};
  };
  EXPECT_TRUE(Waits(numbers(network_.path() + "/k/*.jpg")));
  EXPECT_TRUE(Waits(numbers(network_.path() + "/k/{a,a}.jpg")));
  local_.Write("k/a.jpg", "a");
  EXPECT_FALSE(Waits(numbers(local_.path() + "/k/*.jpg")));
}

TEST_F(ReadsWaitTest, FilesThatAListNamesOnANetworkWait) {
  const std::string list =
      local_.Write("list", network_.path() + "/k/a.jpg 0\n");
  EXPECT_TRUE(Waits({.op = "readers.file_list",
                     .inputs = {},
                     .args = {{"path", list}, {"root", ""}}}));
}

}  // namespace
}  // namespace leat::worker
