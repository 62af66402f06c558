// SPDX-License-Identifier: Apache-2.0
#include "client/cli/convert/shard_files.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/convert/converting.h"

namespace leat::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST_F(Converting, NoFileIsLargerThanTheShardSizeUnlessOneRecordIs) {
  const std::string photos = Photos();
  const std::vector<Sample> expected = ReadFolder(photos);
  for (const char* form : {"tfrecord", "webdataset"}) {
    const std::string out = Path(form);
    ASSERT_EQ(Run({photos, out, "--to", form, "--shard-size", "4KiB"}), "");
    Texts large;
    for (const auto& entry : fs::directory_iterator(out)) {
      if (entry.file_size() > 4096) large.push_back(entry.path().filename());
    }
    ASSERT_EQ(large.size(), 1u) << form;  // a/z.jpg's
    EXPECT_THAT(large[0], HasSubstr("part-00000."));
    EXPECT_GE(Names(form).size(), 3u) << form;
    EXPECT_EQ(form == std::string("tfrecord") ? ReadTfrecord(out)
                                              : ReadWebdataset(out),
              expected);
  }
}

}  // namespace
}  // namespace leat::cli
