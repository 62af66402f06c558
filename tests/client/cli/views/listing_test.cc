// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/listing.h"

#include <algorithm>
#include <string>

#include "client/cli/base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::cli {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

// The arguments of a reader of files may be all their names.
TEST(Listing, AReaderOfManyNamesIsShownByItsBeginningAndItsEnd) {
  std::string reader = "readers.files files=[";
  for (int i = 0; i < 2000; ++i) reader += std::to_string(i) + ".jpg,";
  reader += "]";
  const Json answer = {
      {"datasets", {{{"dataset", {{"name", "a"}, {"reader", reader}}}}}}};
  const View view =
      ListingView(*FindKind("datasets"), answer, absl::UnixEpoch());
  ASSERT_EQ(view.sections.size(), 1u);
  const Table& table = view.sections[0].table;
  const auto column =
      std::find_if(table.columns.begin(), table.columns.end(),
                   [](const Column& each) { return each.title == "READER"; });
  ASSERT_NE(column, table.columns.end());
  ASSERT_EQ(table.rows.size(), 1u);
  const std::string shown = table.rows[0][column - table.columns.begin()].text;
  EXPECT_THAT(shown, StartsWith("readers.files files=[0.jpg,1.jpg,"));
  EXPECT_THAT(shown, EndsWith("1998.jpg,1999.jpg,]"));
  EXPECT_EQ(DisplayWidth(shown), 160u);
  EXPECT_EQ(view.data["datasets"][0]["dataset"]["reader"], reader);
}

}  // namespace
}  // namespace leat::cli
