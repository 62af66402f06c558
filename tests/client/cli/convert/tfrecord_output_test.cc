// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/convert/converting.h"

namespace leat::cli {
namespace {

using ::testing::ElementsAre;

TEST_F(Converting, AnExampleHasTheNamesThatOthersUse) {
  ASSERT_EQ(Run({Photos(), Path("out"), "--to", "tfrecord"}), "");
  const auto texts = [&](const std::string& feature) {
    Texts found;
    for (const Sample& sample :
         Read({"readers.tfrecord",
               {},
               {{"paths", Texts{Path("out")}},
                {"features", Texts{feature, "image/class/label"}},
                {"types", Texts{"bytes", "int64"}},
                {"index", Texts{}}}})) {
      found.push_back(sample.image);
    }
    return found;
  };
  EXPECT_THAT(texts("image/class/text"), ElementsAre("a", "b", "b", "b", "c"));
  EXPECT_THAT(texts("image/format"),
              ElementsAre("JPEG", "JPEG", "JPEG", "PNG", "JPEG"));
  EXPECT_THAT(texts("image/filename"),
              ElementsAre("a/z.jpg", "b/10.JPEG", "b/2.jpg", "b/deep/er/1.png",
                          "c/only.jpg"));
}

}  // namespace
}  // namespace leat::cli
