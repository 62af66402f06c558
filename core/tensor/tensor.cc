// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#include <array>

namespace leat {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  size_t size;
};

constexpr std::array kDTypes = {
    DTypeInfo{DType::kBool, "bool", 1},
    DTypeInfo{DType::kUint8, "uint8", 1},
    DTypeInfo{DType::kInt32, "int32", 4},
    DTypeInfo{DType::kInt64, "int64", 8},
    DTypeInfo{DType::kFloat16, "float16", 2},
    DTypeInfo{DType::kFloat32, "float32", 4},
    DTypeInfo{DType::kInt8, "int8", 1},
    DTypeInfo{DType::kInt16, "int16", 2},
    DTypeInfo{DType::kUint16, "uint16", 2},
    DTypeInfo{DType::kUint32, "uint32", 4},
    DTypeInfo{DType::kBfloat16, "bfloat16", 2},
};

}  // namespace

size_t SizeOf(DType dtype) {
  for (const DTypeInfo& info : kDTypes)
    if (info.dtype == dtype) return info.size;
  return 0;
}

std::string_view Name(DType dtype) {
  for (const DTypeInfo& info : kDTypes)
    if (info.dtype == dtype) return info.name;
  return "unknown";
}

std::optional<DType> ParseDType(std::string_view name) {
  for (const DTypeInfo& info : kDTypes)
    if (info.name == name) return info.dtype;
  return std::nullopt;
}

size_t BatchSchema::row_bytes() const {
  size_t bytes = 0;
  for (const Field& field : fields) bytes += field.row_bytes;
  return bytes;
}

}  // namespace leat
