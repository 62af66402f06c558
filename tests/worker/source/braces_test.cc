// SPDX-License-Identifier: Apache-2.0
#include "worker/source/braces.h"

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using Texts = std::vector<std::string>;

TEST(ExpandBraces, StandForNumbersOrListsWithinABound) {
  const auto all = [](const char* path) {
    return ExpandBraces(path, 100).value_or(Texts{"refused"});
  };
  EXPECT_THAT(all("a"), ElementsAre("a"));
  EXPECT_THAT(all("{8..10}"), ElementsAre("8", "9", "10"));
  EXPECT_THAT(all("{008..10}"), ElementsAre("008", "009", "010"));
  EXPECT_THAT(all("{2..0}"), ElementsAre("2", "1", "0"));
  // A bound of 0 alone does not say how many digits there are.
  EXPECT_EQ(all("{0..10}").front(), "0");
  EXPECT_EQ(all("{10..0}").back(), "0");
  EXPECT_EQ(all("{00..9}").back(), "09");
  EXPECT_THAT(all("{a,b}/{0..1}.x"),
              ElementsAre("a/0.x", "a/1.x", "b/0.x", "b/1.x"));
  EXPECT_THAT(all("{a}{}{..}{1..x}}{"), ElementsAre("{a}{}{..}{1..x}}{"));
  EXPECT_THAT(all("{a,}b"), ElementsAre("ab", "b"));
  EXPECT_EQ(ExpandBraces("{0..99}", 100)->size(), 100);
  EXPECT_EQ(ExpandBraces("{0..100}", 100).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ExpandBraces("{0..18446744073709551615}", 100).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ExpandBraces("{0..9}{0..9}{0..9}", 100).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ExpandBraces("{a,{b,c}}", 100).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace leat::worker
