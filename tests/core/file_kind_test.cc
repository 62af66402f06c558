// SPDX-License-Identifier: Apache-2.0
#include "core/file_kind.h"

#include <sys/stat.h>

#include "gtest/gtest.h"

namespace leat {
namespace {

TEST(FileKind, NamesWhatLiesAtAPath) {
  const auto at = [](const char* path) {
    struct stat info {};
    EXPECT_EQ(stat(path, &info), 0) << path;
    return FileKind(info.st_mode);
  };
  EXPECT_EQ(at("/"), "a directory");
  EXPECT_EQ(at("/proc/self/exe"), "a file");
  EXPECT_EQ(at("/dev/null"), "a character device");
  EXPECT_EQ(FileKind(S_IFIFO | 0600), "a named pipe");
  EXPECT_EQ(FileKind(S_IFSOCK | 0755), "a socket");
  EXPECT_EQ(FileKind(S_IFBLK), "a block device");
}

}  // namespace
}  // namespace leat
