// SPDX-License-Identifier: Apache-2.0
#include "core/plan/short_lists.h"

#include <string>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::StartsWith;

// Returns `count` names. The first one has characters that end lists.
std::string NamesInAList(int count) {
  std::string names = R"("a,]\"[b.jpg")";
  for (int i = 1; i < count; ++i) names += fmt::format(R"(,"{}.jpg")", i);
  return names;
}

TEST(ShortLists, ALongListShowsItsFirstEntriesHowManyMoreAndADigest) {
  const auto text = [](int count) {
    return fmt::format("readers.files files=texts[{}] labels=ints[1,2]",
                       NamesInAList(count));
  };
  EXPECT_EQ(WithShortLists(text(16)), text(16));
  const std::string cut = WithShortLists(text(17));
  EXPECT_THAT(cut, StartsWith(R"(readers.files files=texts["a,]\"[b.jpg",)"
                              R"("1.jpg","2.jpg", and 14 more (digest )"));
  EXPECT_THAT(cut, EndsWith(")] labels=ints[1,2]"));
  EXPECT_EQ(WithShortLists(text(17)), cut);
  EXPECT_NE(WithShortLists(text(18)), cut);
}

// The text may come from another coordinator.
TEST(ShortLists, ATextThatEndsWithinAListIsNotReadPastItsEnd) {
  EXPECT_EQ(WithShortLists("files=texts["), "files=texts[");
  EXPECT_EQ(WithShortLists(R"(files=texts["a)"), R"(files=texts["a)");
  EXPECT_EQ(WithShortLists(R"(path="a\)"), R"(path="a\)");
  EXPECT_EQ(WithShortLists(R"(path="[1,2,3")"), R"(path="[1,2,3")");
  EXPECT_THAT(WithShortLists("files=texts[" + NamesInAList(20) + ",\"x"),
              AllOf(StartsWith("files=texts["), EndsWith(")]")));
}

}  // namespace
}  // namespace leat
