// SPDX-License-Identifier: Apache-2.0
#include "core/html.h"

#include "gtest/gtest.h"

namespace leat {
namespace {

TEST(EscapeHtml, LeavesNoMarkup) {
  EXPECT_EQ(EscapeHtml("<a href='x' b=\"y\">&amp;\x01\n"),
            "&lt;a href=&#39;x&#39; b=&quot;y&quot;&gt;&amp;amp; \n");
  EXPECT_EQ(EscapeHtml("é 42"), "é 42");
}

}  // namespace
}  // namespace leat
