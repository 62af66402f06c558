// SPDX-License-Identifier: Apache-2.0
#include "core/printable.h"

#include "gtest/gtest.h"

namespace leat {
namespace {

TEST(Printable, WritesOutWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("a\tb\x01\x7f"), "a\\tb\\x01\\x7f");
  EXPECT_EQ(Printable("\xff\xc3(\xed\xa0\x80"), "\\xff\\xc3(\\xed\\xa0\\x80");
  EXPECT_EQ(Printable("\u009b2J\u202eexe.a\u061c"),
            "\\x9b2J\\u202eexe.a\\u061c");
  EXPECT_EQ(Printable("Zürich 東京 🙂"), "Zürich 東京 🙂");
}

TEST(Printable, ANameIsNoOptionOfACommand) {
  EXPECT_EQ(LastWord("a-b"), "a-b");
  EXPECT_EQ(LastWord("-x"), "-- -x");
  EXPECT_EQ(LastWord("--help"), "-- --help");
}

}  // namespace
}  // namespace leat
