// SPDX-License-Identifier: Apache-2.0
//
// Rows: functions that determine which rows of the global batch a host
// requests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace leat {

// Checks rows from outside, and returns them in the same order. They may be
// empty (a host whose devices hold no rows). kInvalidArgument names the first
// row that is negative, ≥ batch, or a duplicate.
absl::StatusOr<std::vector<uint32_t>> CheckRows(std::span<const int64_t> rows,
                                                uint32_t batch);
// Checks the same for unsigned rows.
absl::Status CheckRows(std::span<const uint32_t> rows, uint32_t batch);

}  // namespace leat
