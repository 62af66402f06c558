// SPDX-License-Identifier: Apache-2.0
#include "core/plan/rows.h"

#include <string>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using Rows = std::vector<uint32_t>;

std::string ErrorOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(status));
}
absl::Status CheckOf(std::vector<int64_t> rows, uint32_t batch) {
  return CheckRows(rows, batch).status();
}

TEST(CheckRows, KeepsTheCallersOrder) {
  const auto rows = CheckRows(std::vector<int64_t>{5, 0, 7}, 8);
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(*rows, (Rows{5, 0, 7}));
  EXPECT_TRUE(CheckRows(Rows{7, 0}, 8).ok());
}

TEST(CheckRows, TakesAHostWithoutRows) { EXPECT_TRUE(CheckOf({}, 8).ok()); }

TEST(CheckRows, ErrorsNameTheRow) {
  EXPECT_EQ(ErrorOf(CheckOf({0, 8}, 8)),
            "rows[1] is 8: want 0 to 7, the batch has 8 rows");
  EXPECT_EQ(ErrorOf(CheckOf({-1}, 8)),
            "rows[0] is -1: want 0 to 7, the batch has 8 rows");
  EXPECT_EQ(ErrorOf(CheckOf({int64_t{1} << 32}, 8)),
            "rows[0] is 4294967296: want 0 to 7, the batch has 8 rows");
  EXPECT_EQ(ErrorOf(CheckOf({3, 1, 3}, 8)),
            "rows[0] and rows[2] are both 3: want each once");
  EXPECT_EQ(ErrorOf(CheckOf({0, 1, 0}, 2)),
            "3 rows: want at most the 2 of the batch");
  EXPECT_EQ(ErrorOf(CheckRows(Rows{9}, 8)),
            "rows[0] is 9: want 0 to 7, the batch has 8 rows");
}

}  // namespace
}  // namespace leat
