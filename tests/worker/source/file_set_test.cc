// SPDX-License-Identifier: Apache-2.0
#include "worker/source/file_set.h"

#include <filesystem>
#include <string>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/temp_dir.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(FileSet, AnErrorAboutANameHasNoSecrets) {
  const std::string uri = "https://user:secret@host/photos/\xff.jpg?sig=secret";
  FileSet files;
  const absl::Status name = files.Add(uri, 1, "size=1");
  EXPECT_TRUE(absl::IsFailedPrecondition(name)) << name;
  EXPECT_THAT(Message(name), HasSubstr("https://host/photos/\\xff.jpg"));
  EXPECT_THAT(Message(name), Not(HasSubstr("secret")));
  ASSERT_TRUE(files.Add("a", 1, "size=1").ok());
  const absl::Status size =
      files.Add("https://user:secret@host/a", UINT64_MAX, "size=1");
  EXPECT_TRUE(absl::IsDataLoss(size)) << size;
  EXPECT_THAT(Message(size), Not(HasSubstr("secret")));
}

// The dataset's folder is there, but tells nothing of another one's mount.
TEST(FileSet, AFileOutsideOfTheFolderIsKnownByItsOwn) {
  const TempDir dir;
  const std::string root = dir.path() + "/set";
  dir.Write("set/there", "x");
  dir.Write("sets/there", "x");
  const auto storage = *Storage::Create({});
  const auto fault = [&](const std::string& name, const std::string& folder) {
    FileSet files;
    EXPECT_TRUE(files.Add(dir.path() + name, 1, "size=1 mtime_ns=1").ok());
    files.set_folder(folder);
    return FaultOf(files.Open(*storage, 0).status());
  };
  for (const std::string& folder : {root, root + "/"}) {
    EXPECT_EQ(fault("/set/class/gone", folder), Fault::kObject);
    EXPECT_EQ(fault("/mount/gone", folder), Fault::kWorker);
    EXPECT_EQ(fault("/sets/class/gone", folder), Fault::kWorker);
    EXPECT_EQ(fault("/sets/gone", folder), Fault::kObject);
  }
}

}  // namespace
}  // namespace leat::worker
