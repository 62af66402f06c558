// SPDX-License-Identifier: Apache-2.0
//
// DType, Shape, Field, BatchSchema: what a row of a batch consists of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

// The values are the wire's (leat.v1.DType).
enum class DType : uint8_t {
  kBool = 1,
  kUint8 = 2,
  kInt32 = 3,
  kInt64 = 4,
  kFloat16 = 5,
  kFloat32 = 6
};

// Bytes of one element.
size_t SizeOf(DType dtype);
// NumPy's names: "bool", "uint8", "int32", "int64", "float16", "float32".
std::string_view Name(DType dtype);
std::optional<DType> ParseDType(std::string_view name);

// Sizes of the axes, outermost first; empty for a scalar.
using Shape = std::vector<int64_t>;

// One output of a pipeline, as it stands in a batch: rows × `shape`, dense,
// row-major.
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

  // Bytes of one row over all fields.
  size_t row_bytes() const;
  friend bool operator==(const BatchSchema&, const BatchSchema&) = default;
};

// Bytes of one row over all fields, at most.
inline constexpr size_t kMaxRowBytes = size_t{64} << 20;

// The name of the field that marks valid rows, where HasValidField says that
// there is one: bool, scalar.
inline constexpr std::string_view kValidField = "valid";

}  // namespace leat
