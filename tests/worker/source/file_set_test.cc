// SPDX-License-Identifier: Apache-2.0
#include "worker/source/file_set.h"

#include <string>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

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

}  // namespace
}  // namespace leat::worker
