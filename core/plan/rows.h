// SPDX-License-Identifier: Apache-2.0
//
// Rows: which rows of the global batch a host asks for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace leat {

// Rows [⌊G·part/n⌋, ⌊G·(part+1)/n⌋) of a batch of G rows, for a host that takes
// the `part`-th of n contiguous parts. kInvalidArgument: n is 0 or over G, or
// part ≥ n.
absl::StatusOr<std::vector<uint32_t>> RowsOfPart(uint32_t part,
                                                 uint32_t num_parts,
                                                 uint32_t batch);
// The rows of a caller who may be wrong, in the caller's order. May be empty (a
// host whose devices hold nothing). kInvalidArgument names the first row that
// is negative, ≥ batch, or there twice.
absl::StatusOr<std::vector<uint32_t>> CheckRows(std::span<const int64_t> rows,
                                                uint32_t batch);
// The same on rows that are unsigned already.
absl::Status CheckRows(std::span<const uint32_t> rows, uint32_t batch);

}  // namespace leat
