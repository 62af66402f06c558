// SPDX-License-Identifier: Apache-2.0
#include "core/plan/rows.h"

#include <utility>

#include "core/status.h"

namespace leat {
namespace {

template <class Row>
absl::Status Check(std::span<const Row> rows, uint32_t batch) {
  constexpr size_t kNowhere = ~size_t{0};
  if (rows.size() > batch)
    return InvalidArgument("{} rows: want at most the {} of the batch",
                           rows.size(), batch);
  std::vector<size_t> seen_at(batch, kNowhere);
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row row = rows[i];
    if (std::cmp_less(row, 0) || std::cmp_greater_equal(row, batch))
      return InvalidArgument(
          "rows[{}] is {}: want 0 to {}, the batch has {} rows", i, row,
          int64_t{batch} - 1, batch);
    if (seen_at[row] != kNowhere)
      return InvalidArgument(
          "rows[{}] and rows[{}] are both {}: want each once", seen_at[row], i,
          row);
    seen_at[row] = i;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> CheckRows(std::span<const int64_t> rows,
                                                uint32_t batch) {
  RETURN_IF_ERROR(Check(rows, batch));
  return std::vector<uint32_t>(rows.begin(), rows.end());
}

absl::Status CheckRows(std::span<const uint32_t> rows, uint32_t batch) {
  return Check(rows, batch);
}

}  // namespace leat
