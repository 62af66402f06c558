// SPDX-License-Identifier: Apache-2.0
#include "worker/source/source.h"

#include <set>
#include <string>
#include <vector>

#include "core/pipeline/operators.h"
#include "core/plan/job.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

// Datasets that have nothing in common must not have one root.
TEST(RootOf, IsTheFirstPathOfEachReader) {
  const std::set<std::string> places = {
      "annotations", "array", "files", "images", "path", "paths", "root"};
  for (const OperatorInfo& info : AllOperators()) {
    if (!info.name.starts_with("readers.") || info.name == kExternalReader)
      continue;
    size_t found = 0;
    for (const ArgInfo& arg : info.args) {
      if (!places.contains(arg.name)) continue;
      ++found;
      const auto root_of = [&](const std::string& path) {
        const Value value =
            arg.type == ArgType::kStrings
                ? Value(std::vector<std::string>{path, "/other"})
                : Value(path);
        return RootOf({.op = info.name, .args = {{arg.name, value}}});
      };
      EXPECT_EQ(root_of("/data/a b"), "/data/a b") << info.name << arg.name;
      EXPECT_EQ(root_of("file:///data/a%20b/"), "/data/a b") << info.name;
      EXPECT_EQ(root_of("s3://bucket/x"), "s3://bucket") << info.name;
    }
    EXPECT_GT(found, 0u) << info.name;
  }
}

TEST(FolderOf, IsWhatIsBeforeThePatternInEveryStorage) {
  const auto folder_of = [](const std::string& path) {
    return FolderOf({.op = "readers.tfrecord",
                     .args = {{"paths", std::vector<std::string>{path}}}});
  };
  EXPECT_EQ(folder_of("/data/train/*/a.tfrecord"), "/data/train");
  EXPECT_EQ(folder_of("file:///data/a%20b/{0..9}.tfrecord"), "/data/a b");
  EXPECT_EQ(folder_of("*.tfrecord"), ".");
  EXPECT_EQ(folder_of("s3://bucket/data/train-*/a.tfrecord"),
            "s3://bucket/data");
  EXPECT_EQ(folder_of("s3://bucket/data/"), "s3://bucket/data");
  EXPECT_EQ(folder_of("https://user:pass@host/data/x.tfrecord?sig=1"),
            "https://host/data/x.tfrecord");
  EXPECT_EQ(folder_of("http://[::1]:8000/a/b-{0..9}"), "http://[::1]:8000/a");
  EXPECT_EQ(folder_of("s3://buck*"), "s3://buck*");
}

TEST(SourceTest, AnUnknownReaderIsNamed) {
  const auto status = BuildIndex({.op = "readers.tape"}, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), testing::HasSubstr("readers.tape"));
}

}  // namespace
}  // namespace leat::worker
