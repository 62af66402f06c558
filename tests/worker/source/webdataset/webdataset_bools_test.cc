// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/source/loader_support.h"
#include "tests/worker/source/webdataset/tar_maker.h"
#include "tests/worker/temp_dir.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;

absl::StatusOr<StoredSample> ReadAs(const std::string& type,
                                    const std::string& bytes) {
  const TempDir dir;
  const Node reader = {
      .op = "readers.webdataset",
      .inputs = {},
      .args = {
          {"paths", std::vector{dir.Write("a.tar", TarMemberOf("0.x", bytes))}},
          {"ext", std::vector<std::string>{"x"}},
          {"types", std::vector{type}}}};
  ASSIGN_OR_RETURN(const BuiltIndex index, BuildIndex(reader, {}));
  ASSIGN_OR_RETURN(const auto source, OpenSource(reader, index.blob, {}));
  return source->Read(0);
}

// A worker refuses such a record from a peer, and other readers refuse it too.
TEST(WebdatasetBools, AnyOtherByteIsABadSample) {
  for (const char* type : {"bool[2]", "bool[?]", "bool[?,1]"}) {
    const auto good = ReadAs(type, std::string("\1\0", 2));
    ASSERT_TRUE(good.ok()) << good.status();
    EXPECT_EQ(TextOf(good->fields[0]), std::string("\1\0", 2));
    for (const char* bad : {"\1\2", "\xff\1"}) {
      const absl::Status status = ReadAs(type, bad).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(
          Message(status),
          HasSubstr("a.tar: sample 0 at 512: component \"x\": element"));
    }
  }
}

}  // namespace
}  // namespace leat::worker
