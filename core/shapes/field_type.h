// SPDX-License-Identifier: Apache-2.0
//
// Parses the text that declares the type of a stored field to readers of
// records.
//
//   "encoded"           the bytes of an image
//   "int64"             one number
//   "float32[4]"        a vector; "uint8[28,28]": a matrix, row by row
//   "int64[?]"          any number; "float32[?,3]": rows of three
//   "bytes"             short for "uint8[?]"
//
// The element types are NumPy's names (core/tensor/tensor.h). Only the first
// size may be open; all may be if values come with their shapes
// ("uint8[?,?,3]").
//
// Pure: readers call these functions on any thread, for arguments of users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"

namespace leat {

enum class OpenSizes : uint8_t { kFirst, kAny };

// kInvalidArgument: the message says what was expected; also over 8 axes, or
// more than kMaxRowBytes (counting sizes that are not open).
absl::StatusOr<ValueType> ParseFieldType(std::string_view text,
                                         OpenSizes open = OpenSizes::kFirst);

// Returns whether a sample may have any number of rows of `type`.
bool IsOpen(const ValueType& type);
// Returns the number of elements of a tensor; of one row if it is open. 1 for a
// scalar.
uint64_t StoredElements(const ValueType& type);

// Checks that `bytes` bytes of this shape are a value of `type`. `shape` is
// empty if the type determines it. kInvalidArgument: "15 bytes, want float32
// (4,)".
absl::Status CheckStored(const ValueType& type,
                         std::span<const std::byte> bytes,
                         std::span<const int64_t> shape);

}  // namespace leat
