// SPDX-License-Identifier: Apache-2.0
#include "client/cli/convert/new_folder.h"

#include <sys/fsuid.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/convert/converting.h"

namespace leat::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(Converting, WhatExistsIsReplacedOnlyByForceAndOnlyIfItIsOurs) {
  const std::string photos = Photos(), out = Path("out");
  fs::create_directories(out);  // an empty folder may exist
  ASSERT_EQ(Run({photos, out, "--to", "tfrecord"}), "");
  EXPECT_THAT(Run({photos, out, "--to", "webdataset"}),
              HasSubstr("out: exists; --force replaces it"));
  EXPECT_EQ(exit_code_, kFailed);
  EXPECT_EQ(ReadTfrecord(out).size(), 5u);
  ASSERT_EQ(Run({photos, out, "--to", "webdataset", "--force"}), "");
  EXPECT_THAT(Names("out"), ElementsAre("classes.txt", "part-00000.tar"));
  dir_.Write("out/thesis.tex", "years of work");
  EXPECT_THAT(Run({photos, out, "--to", "webdataset", "--force"}),
              HasSubstr("holds thesis.tex, which leat convert did not write"));
  EXPECT_EQ(Names("out").size(), 3u);
  const std::string file = dir_.Write("file", "");
  EXPECT_THAT(Run({photos, file, "--to", "caffe2", "--force"}),
              HasSubstr("is no folder"));
  EXPECT_THAT(Names(""), ElementsAre("file", "out", "photos"));
}

TEST_F(Converting, WhereNobodyMayWriteTheFolderIsNamed) {
  const std::string photos = Photos();
  fs::create_directories(Path("closed/out"));
  fs::permissions(Path("closed"), fs::perms(0555));
  // Root may write everywhere.
  fs::permissions(dir_.path(), fs::perms(0755));
  const bool root = geteuid() == 0;
  if (root) setfsuid(65534);
  const std::string made = Run({photos, Path("closed/new"), "--to", "caffe2"});
  const std::string empty = Run({photos, Path("closed/out"), "--to", "caffe2"});
  const std::string deep = Run({photos, Path("closed/a/b"), "--to", "caffe2"});
  if (root) setfsuid(0);
  fs::permissions(Path("closed"), fs::perms(0755));
  EXPECT_THAT(made, HasSubstr("/closed/new: new.partial-"));
  EXPECT_THAT(made, HasSubstr("cannot be made beside it, where it is written: "
                              "Permission denied"));
  EXPECT_THAT(empty, HasSubstr("/closed/out: out.partial-"));
  EXPECT_THAT(deep, HasSubstr("/closed/a: Permission denied"));
}

}  // namespace
}  // namespace leat::cli
