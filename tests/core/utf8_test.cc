// SPDX-License-Identifier: Apache-2.0
#include "core/utf8.h"

#include "gtest/gtest.h"

namespace leat {
namespace {

TEST(Utf8, TextStaysAsItIs) {
  for (const char* text :
       {"", "plain", "caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
    EXPECT_EQ(ToUtf8(text), text);
  }
}

TEST(Utf8, OtherBytesAreWrittenOut) {
  EXPECT_FALSE(IsUtf8("caf\xe9"));
  EXPECT_EQ(ToUtf8("caf\xe9.cls"), "caf\\xe9.cls");
  // An overlong form, a surrogate, a value over U+10FFFF, and a truncated one.
  EXPECT_EQ(ToUtf8("\xc0\xaf"), "\\xc0\\xaf");
  EXPECT_EQ(ToUtf8("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(ToUtf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(ToUtf8("a\xe2\x82"), "a\\xe2\\x82");
  EXPECT_TRUE(IsUtf8(ToUtf8("\xff\xfe\x80")));
}

TEST(Utf8, NoSequenceIsCutInTwo) {
  const std::string euros = "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac";
  for (size_t most = 0; most < 10; ++most)
    EXPECT_TRUE(IsUtf8(ToUtf8(euros, most))) << most;
  EXPECT_EQ(ToUtf8(euros, 1).size(), 3u);
}

}  // namespace
}  // namespace leat
