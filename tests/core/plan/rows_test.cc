// SPDX-License-Identifier: Apache-2.0
#include "core/plan/rows.h"

#include <numeric>

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

TEST(RowsOfPart, PartitionsTheBatchEvenly) {
  for (uint32_t batch = 1; batch < 40; ++batch)
    for (uint32_t parts = 1; parts <= batch; ++parts) {
      Rows all;
      for (uint32_t part = 0; part < parts; ++part) {
        const auto rows = RowsOfPart(part, parts, batch);
        ASSERT_TRUE(rows.ok());
        EXPECT_GE(rows->size(), batch / parts);
        EXPECT_LE(rows->size(), (batch + parts - 1) / parts);
        all.insert(all.end(), rows->begin(), rows->end());
      }
      Rows want(batch);
      std::iota(want.begin(), want.end(), 0u);
      ASSERT_EQ(all, want);
    }
}

TEST(RowsOfPart, DoesNotOverflow) {
  const uint32_t batch = 1u << 20;
  EXPECT_EQ(*RowsOfPart(batch - 1, batch, batch), Rows{batch - 1});
}

TEST(RowsOfPart, ErrorsNameTheValueAndTheRange) {
  EXPECT_EQ(ErrorOf(RowsOfPart(0, 0, 8).status()),
            "0 parts of a batch of 8 rows: want 1 to 8 parts");
  EXPECT_EQ(ErrorOf(RowsOfPart(0, 9, 8).status()),
            "9 parts of a batch of 8 rows: want 1 to 8 parts");
  EXPECT_EQ(ErrorOf(RowsOfPart(3, 3, 8).status()), "part 3 of 3: want 0 to 2");
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
