// SPDX-License-Identifier: Apache-2.0
#include "core/pipeline/canonical.h"

#include <limits>

#include "gtest/gtest.h"

namespace leat {
namespace {

std::string Quoted(std::string_view text) {
  std::string out = "=";
  AppendQuoted(text, &out);
  return out;
}

std::string Hex(double value) {
  std::string out = "=";
  AppendDouble(value, &out);
  return out;
}

TEST(Canonical, QuotesWhatWouldEndAText) {
  EXPECT_EQ(Quoted("cat"), "=\"cat\"");
  EXPECT_EQ(Quoted("a\"b\\"), "=\"a\\\"b\\\\\"");
  EXPECT_EQ(Quoted("a\nb\x7f"), "=\"a\\x0ab\\x7f\"");
  EXPECT_EQ(Quoted("\xc3\xbc"), "=\"\xc3\xbc\"");
}

TEST(Canonical, PrintsEveryBitOfANumber) {
  EXPECT_EQ(Hex(3), "=0x1.8p+1");
  EXPECT_EQ(Hex(-0.0), "=-0x0p+0");
  EXPECT_NE(Hex(0.1), Hex(0.1 + 1e-17 * 2));
  EXPECT_EQ(Hex(std::numeric_limits<double>::quiet_NaN()), "=nan");
  EXPECT_EQ(Hex(-std::numeric_limits<double>::infinity()), "=-inf");
}

}  // namespace
}  // namespace leat
