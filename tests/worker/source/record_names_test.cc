// SPDX-License-Identifier: Apache-2.0
#include "worker/source/record_names.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;

std::string NameIn(const std::string& path, const std::string& file) {
  const Node reader{.op = "readers.tfrecord",
                    .inputs = {},
                    .args = {{"paths", std::vector<std::string>{path}}}};
  return RecordNames(reader).NameOf({.file = file});
}

// Conditions choose the same samples of a copy, wherever it is.
TEST(RecordNames, AFileIsNamedByItsPlaceBelowTheFolder) {
  EXPECT_EQ(NameIn("/data/train", "/data/train/k/0"), "k/0");
  EXPECT_EQ(NameIn("/data/train/", "/data/train/k/0"), "k/0");
  EXPECT_EQ(NameIn("/data/train/*/0", "/data/train/k/0"), "k/0");
  EXPECT_EQ(NameIn("/", "/k/0"), "k/0");
  EXPECT_EQ(NameIn("file:///a%20b", "file:///a%20b/k%20/0"), "k /0");
  EXPECT_EQ(NameIn("s3://bucket/data/train", "s3://bucket/data/train/k/0"),
            "k/0");
  EXPECT_EQ(NameIn("s3://bucket/train/*/0", "s3://bucket/train/k/0"), "k/0");
  EXPECT_EQ(NameIn("s3://bucket", "s3://bucket/k/0"), "k/0");
}

TEST(RecordNames, AFileThatIsNamedItselfIsInNoFolder) {
  EXPECT_EQ(NameIn("/data/k/0", "/data/k/0"), "/data/k/0");
  EXPECT_EQ(NameIn("s3://bucket/k/0", "s3://bucket/k/0"), "k/0");
  EXPECT_EQ(NameIn("s3://bucket/k/0", "s3://bucket/l/1"), "l/1");
}

TEST(RecordNames, AFileOfAListIsNamedByItsPlaceBelowTheRootOrTheList) {
  const auto name_in = [](const std::string& root, const std::string& file) {
    const Node reader{.op = "readers.file_list",
                      .inputs = {},
                      .args = {{"path", "/lists/a.txt"}, {"root", root}}};
    return RecordNames(reader).NameOf({.file = file});
  };
  EXPECT_EQ(name_in("", "/lists/k/0"), "k/0");
  EXPECT_EQ(name_in("", "/data/k/0"), "/data/k/0");
  EXPECT_EQ(name_in("/data", "/data/k/0"), "k/0");
  EXPECT_EQ(name_in("/data", "/lists/k/0"), "/lists/k/0");
}

TEST(RecordNames, AKeyIsTheNameAsItIs) {
  const Node reader{
      .op = "readers.mds", .inputs = {}, .args = {{"path", "/data"}}};
  EXPECT_EQ(
      RecordNames(reader).NameOf({.file = "/data/a.tar", .key = "/data/k"}),
      "/data/k");
}

TEST(OutputNames, AreTheScriptsOrThoseOfAnImageAndItsLabel) {
  const Node named{.op = "readers.parquet",
                   .inputs = {},
                   .args = {{"columns", std::vector<std::string>{"a", "b"}}}};
  EXPECT_THAT(OutputNames(named, 2), ElementsAre("a", "b"));
  const Node photos{.op = "readers.image_folder", .inputs = {}, .args = {}};
  EXPECT_THAT(OutputNames(photos, 2), ElementsAre("encoded", "label"));
  EXPECT_THAT(OutputNames(photos, 1), ElementsAre(""));
}

}  // namespace
}  // namespace leat::worker
