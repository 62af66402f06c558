// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "core/selection/condition.h"
#include "core/status.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

// Returns the error of a text; empty: it has none.
std::string ErrorOf(const std::string& text) {
  const auto condition = Condition::Parse(text);
  EXPECT_TRUE(condition.ok() || absl::IsInvalidArgument(condition.status()));
  return std::string(Message(condition.status()));
}

TEST(ConditionParser, SaysWhereItIsWrong) {
  EXPECT_EQ(ErrorOf("width = 5"),
            "where: = at character 7: want == != < <= > >= \"in\" or \"like\"; "
            "did you mean \"==\"?");
  EXPECT_EQ(ErrorOf(""),
            "where: the end at character 1: want a column, a number or a text");
  EXPECT_EQ(ErrorOf("width < 5 AND x == 1"),
            "where: AND at character 11: want \"and\", \"or\" or the end; did "
            "you mean \"and\"?");
  EXPECT_EQ(ErrorOf("3 < 5"),
            "where: 5 at character 5: want a column, since the left side is "
            "none");
  EXPECT_EQ(ErrorOf("(a < 1"), "where: the end at character 7: want \")\"");
  EXPECT_EQ(ErrorOf("a in [1, ]"),
            "where: ] at character 10: want a number or a text");
  EXPECT_EQ(ErrorOf("a in [1 2]"),
            "where: 2 at character 9: want \",\" or \"]\"");
  EXPECT_EQ(ErrorOf("a in 5"), "where: 5 at character 6: want \"[\"");
  EXPECT_EQ(ErrorOf("a not < 5"),
            "where: < at character 7: want \"in\" or \"like\"");
  EXPECT_EQ(ErrorOf("a like 5"), "where: 5 at character 8: want a text");
  EXPECT_EQ(ErrorOf("a == 'x"),
            "where: 'x at character 6: want a ' at its end");
  EXPECT_EQ(ErrorOf("a == 'x\\n'"),
            "where: \\n at character 8: want a quote or a backslash after the "
            "backslash");
  EXPECT_EQ(ErrorOf("a == 1e400"),
            "where: 1e400 at character 6: want a number");
  EXPECT_EQ(ErrorOf("a == 0x10"), "where: 0x10 at character 6: want a number");
  EXPECT_EQ(ErrorOf("a == é"),
            "where: é at character 6: want a column, a number or a text");
  EXPECT_EQ(ErrorOf("`` == 5"),
            "where: `` at character 1: want the name of a column");
  EXPECT_EQ(ErrorOf("length(5) == 5"),
            "where: 5 at character 8: want the name of a column");
  EXPECT_EQ(ErrorOf("a == '\xff'"), "where: a == '\\xff': want UTF-8");
}

TEST(ConditionParser, SaysWhatOtherLanguagesMean) {
  const struct {
    const char *text, *meant;
  } cases[] = {{"a = 5", "=="},
               {"a => 5", ">="},
               {"a =< 5", "<="},
               {"a <> 5", "!="},
               {"a < 1 && b < 2", "and"},
               {"a < 1 & b < 2", "and"},
               {"a < 1 || b < 2", "or"},
               {"a < 1 | b < 2", "or"},
               {"!(a < 1)", "not"},
               {"~(a < 1)", "not"},
               {"a < 1 And b < 2", "and"},
               {"a < 1 OR b < 2", "or"},
               {"a NOT in [1]", "not"},
               {"a IN [1]", "in"},
               {"a LIKE 'x'", "like"},
               {"a is 5", "=="},
               {"a in [True]", "true"}};
  for (const auto& [text, meant] : cases)
    EXPECT_TRUE(
        ErrorOf(text).ends_with(fmt::format("; did you mean \"{}\"?", meant)))
        << text << ": " << ErrorOf(text);
  EXPECT_EQ(ErrorOf("a == "),
            "where: the end at character 6: want a column, a number or a text");
}

TEST(ConditionParser, HasBounds) {
  EXPECT_EQ(ErrorOf(std::string(kMaxConditionBytes + 1, ' ')),
            "where: a text of 65537 bytes: want at most 65536");
  const std::string deep(kMaxConditionDepth - 1, '(');
  const std::string closed(kMaxConditionDepth - 1, ')');
  EXPECT_EQ(ErrorOf(deep + "a == 1" + closed), "");
  EXPECT_EQ(ErrorOf("(" + deep + "a == 1" + closed + ")"),
            "where: a at character 65: want at most 64 parentheses and \"not\" "
            "within each other");
  EXPECT_EQ(ErrorOf(std::string(20'000, '(')).substr(0, 30),
            "where: ( at character 65: want");
  std::string list = "a in [1";
  for (size_t i = 2; i < kMaxConditionTerms; ++i) list += ",1";
  EXPECT_EQ(ErrorOf(list + "]"), "");
  EXPECT_EQ(ErrorOf(list + ",1]"),
            "where: 1 at character 20005: want at most 10000 comparisons and "
            "entries of lists");
  std::string wide = "c0 == 1";
  for (size_t i = 1; i < kMaxConditionColumns; ++i)
    wide += fmt::format(" or c{} == 1", i);
  EXPECT_EQ(ErrorOf(wide), "");
  EXPECT_EQ(ErrorOf(wide + " or x == 1").substr(0, 50),
            "where: == at character 1193: want at most 100 diff");
  EXPECT_EQ(ErrorOf("a like '" + std::string(1025, 'x') + "'").substr(0, 14),
            "where: 'xxxxxx");
}

}  // namespace
}  // namespace leat
