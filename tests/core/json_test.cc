// SPDX-License-Identifier: Apache-2.0
#include "core/json.h"

#include "gtest/gtest.h"

namespace leat {
namespace {

TEST(JsonString, EscapesWhatJsonForbids) {
  EXPECT_EQ(JsonString(""), R"("")");
  EXPECT_EQ(JsonString(R"(a"b\c)"), R"("a\"b\\c")");
  EXPECT_EQ(JsonString("\n\t\r"), R"("\n\t\r")");
  EXPECT_EQ(JsonString(std::string_view("\0\x1f\x7f", 3)),
            R"("\u0000\u001f\u007f")");
}

TEST(JsonString, KeepsUtf8) {
  const std::string text = "é €\U0001F40E \U0010FFFF";
  EXPECT_EQ(JsonString(text), '"' + text + '"');
}

TEST(JsonString, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(JsonString("\xff"), R"("\ufffd")");
  EXPECT_EQ(JsonString("a\x80z"), R"("a\ufffdz")");
  EXPECT_EQ(JsonString("\xc3"), R"("\ufffd")");            // cut short
  EXPECT_EQ(JsonString("\xe2\x82"), R"("\ufffd\ufffd")");  // cut short
  EXPECT_EQ(JsonString("\xc0\xaf"), R"("\ufffd\ufffd")");  // overlong
  EXPECT_EQ(JsonString("\xe0\x80\x80"), R"("\ufffd\ufffd\ufffd")");
  EXPECT_EQ(JsonString("\xed\xa0\x80"),
            R"("\ufffd\ufffd\ufffd")");  // surrogate
  EXPECT_EQ(JsonString("\xf4\x90\x80\x80"),
            R"("\ufffd\ufffd\ufffd\ufffd")");  // over U+10FFFF
  EXPECT_EQ(JsonString("\xc3\"x"), R"("\ufffd\"x")");
}

}  // namespace
}  // namespace leat
