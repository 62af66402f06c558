// SPDX-License-Identifier: Apache-2.0
//
// WholeNumber reads an element of a tensor as a whole number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "core/tensor/tensor.h"

namespace leat::worker {

template <class T>
T ElementAt(const std::byte* at) {
  T value{};
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Returns nullopt for types with fractions. REQUIRES: `at` has SizeOf(dtype)
// bytes.
inline std::optional<int64_t> WholeNumber(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUint8:
      return ElementAt<uint8_t>(at);
    case DType::kInt8:
      return ElementAt<int8_t>(at);
    case DType::kInt16:
      return ElementAt<int16_t>(at);
    case DType::kUint16:
      return ElementAt<uint16_t>(at);
    case DType::kInt32:
      return ElementAt<int32_t>(at);
    case DType::kUint32:
      return ElementAt<uint32_t>(at);
    case DType::kInt64:
      return ElementAt<int64_t>(at);
    default:
      return std::nullopt;
  }
}

}  // namespace leat::worker
