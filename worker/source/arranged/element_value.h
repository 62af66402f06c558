// SPDX-License-Identifier: Apache-2.0
//
// Reads an element of a tensor as a number.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
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

inline double NumberOfHalf(uint16_t half) {
  const int exponent = (half >> 10) & 31, mantissa = half & 1023;
  const double sign = half & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

// Returns nullopt for types of whole numbers. REQUIRES: as WholeNumber.
inline std::optional<double> Fraction(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::kFloat16:
      return NumberOfHalf(ElementAt<uint16_t>(at));
    case DType::kBfloat16:
      return std::bit_cast<float>(uint32_t{ElementAt<uint16_t>(at)} << 16);
    case DType::kFloat32:
      return ElementAt<float>(at);
    default:
      return std::nullopt;
  }
}

}  // namespace leat::worker
