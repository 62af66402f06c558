// SPDX-License-Identifier: Apache-2.0
#include "core/plan/text_difference.h"

#include <string>

#include "core/utf8.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Returns a pipeline that reads 500 files. The 250th has a name with this `end`.
std::string OfFiles(const std::string& end, int label,
                    const std::string& more = "") {
  std::string files;
  for (int i = 0; i < 500; ++i)
    files += fmt::format("{}\"/photos/größe {:03}{}\"", i ? "," : "", i,
                         i == 250 ? end : ".jpg");
  return fmt::format(
      "graph\n0 readers.files files=texts[{}] labels=ints[0,1,{}]{}\n"
      "output \"image\" 0:0\n",
      files, label, more);
}

TEST(TextDifference, ShowsOfLongLinesTheOperatorAndWhatDiffers) {
  const std::string files =
      TextDifference(OfFiles(".jpg", 2), OfFiles(".png", 2));
  EXPECT_THAT(files, AllOf(HasSubstr("pipeline \"0 readers.files files="),
                           HasSubstr("250.jpg"), HasSubstr("250.png"),
                           HasSubstr(" … "), Not(HasSubstr("499"))));
  EXPECT_LT(files.size(), 700u);
  const std::string labels =
      TextDifference(OfFiles(".jpg", 2), OfFiles(".jpg", 3));
  EXPECT_THAT(labels,
              AllOf(HasSubstr("readers.files files="),
                    HasSubstr("ints[0,1,2]\" !="), HasSubstr("ints[0,1,3]\"")));
}

TEST(TextDifference, IsUtf8WhereverALineIsCut) {
  for (int length = 0; length < 12; ++length) {
    const std::string same(length, 'x');
    EXPECT_TRUE(
        IsUtf8(TextDifference(OfFiles(same + "a", 2), OfFiles(same + "b", 2))));
  }
}

TEST(TextDifference, ShowsALineThatGoesOnWhereTheOtherEnds) {
  const std::string shorter = OfFiles(".jpg", 2);
  const std::string longer = OfFiles(".jpg", 2, " root=\"/data\"");
  EXPECT_THAT(TextDifference(shorter, longer), HasSubstr("root=\"/data\""));
  EXPECT_THAT(TextDifference(longer, shorter), HasSubstr("root=\"/data\""));
}

}  // namespace
}  // namespace leat
