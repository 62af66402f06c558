// SPDX-License-Identifier: Apache-2.0
//
// DType, Shape, Field and BatchSchema describe a row of a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

// The values are those of leat.v1.DType.
enum class DType : uint8_t {
  kBool = 1,
  kUint8 = 2,
  kInt32 = 3,
  kInt64 = 4,
  kFloat16 = 5,
  kFloat32 = 6,
  kInt8 = 7,
  kInt16 = 8,
  kUint16 = 9,
  kUint32 = 10,
  kBfloat16 = 11
};

inline constexpr DType kFirstDType = DType::kBool;
inline constexpr DType kLastDType = DType::kBfloat16;

// Returns whether values of the type are only carried: they are stored, cut,
// padded, reshaped, cast and returned, but no operator computes with them.
constexpr bool IsCarried(DType dtype) { return dtype >= DType::kInt8; }

// Returns the size of one element in bytes.
size_t SizeOf(DType dtype);
// Returns NumPy's names: "bool", "uint8", "int32", "int64", "float16",
// "float32", "int8", "int16", "uint16", "uint32", and "bfloat16", as ml_dtypes
// has it.
std::string_view Name(DType dtype);
std::optional<DType> ParseDType(std::string_view name);

// Sizes of the axes, outermost first; empty for a scalar.
using Shape = std::vector<int64_t>;

// One output of a pipeline in a batch: rows × `shape`, dense, row-major.
struct Field {
  std::string name;
  DType dtype = DType::kUint8;
  Shape shape;           // of one row
  size_t row_bytes = 0;  // product of shape × SizeOf(dtype); > 0

  friend bool operator==(const Field&, const Field&) = default;
};

// The fields of a batch in the order that the pipeline returned them. Names are
// unique.
struct BatchSchema {
  std::vector<Field> fields;

  // Returns the size of one row over all fields in bytes.
  size_t row_bytes() const;
  friend bool operator==(const BatchSchema&, const BatchSchema&) = default;
};

// Maximum size of one row over all fields in bytes.
inline constexpr size_t kMaxRowBytes = size_t{64} << 20;

// Maximum size of any value of a row, as far as its type says its sizes: more
// than a worker has memory for, and little enough that sums and products of
// such sizes fit 64 bits.
inline constexpr uint64_t kMaxValueBytes = uint64_t{1} << 40;

// The name of the field that marks valid rows, present if HasValidField: bool,
// scalar.
inline constexpr std::string_view kValidField = "valid";

}  // namespace leat
