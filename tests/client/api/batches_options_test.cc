// SPDX-License-Identifier: Apache-2.0
#include "client/api/batches_options.h"

#include <string_view>

#include "core/status.h"
#include "gtest/gtest.h"

namespace leat::client {
namespace {

TEST(BatchesOptions, AValueOutOfRangeIsNamed) {
  EXPECT_TRUE(CheckOptions({}).ok());
  BatchesOptions options;
  options.window = 65;
  EXPECT_EQ(Message(CheckOptions(options)), "window 65: want 1 to 64 steps");
  options = {};
  options.row_timeout = absl::ZeroDuration();
  EXPECT_EQ(Message(CheckOptions(options)), "row_timeout 0: want more than 0");
  options = {};
  options.device = -2;
  EXPECT_TRUE(Message(CheckOptions(options)).starts_with("device -2: want"));
}

TEST(BatchesOptions, TheWindowShrinksToStayUnderItsBytes) {
  BatchesOptions options;
  options.window = 8;
  options.max_window_bytes = 1000;
  EXPECT_EQ(BoundedWindow(options, 10), 8u);
  EXPECT_EQ(BoundedWindow(options, 200), 3u) << "and two handed out";
  EXPECT_EQ(BoundedWindow(options, 5000), 1u);
  EXPECT_EQ(BoundedWindow(options, 0), 8u);
}

}  // namespace
}  // namespace leat::client
