// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of one element: normalize, and casts between dtypes. These are
// plain functions for C++ and CUDA compilers, so that every device and the
// consumer's side compute the same bits. No SIMD, no libm, no state. REQUIRES:
// contraction of a product and a sum is off (-ffp-contract=off, nvcc's
// --fmad=false), and no fast math.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/tensor/tensor.h"

// Precedes a function that both compilers accept.
#ifdef __CUDACC__
#define LEAT_PIXEL __host__ __device__ inline
#else
#define LEAT_PIXEL inline
#endif

namespace leat {

// Storage of a float16 element.
struct Half {
  uint16_t bits;
};
// Storage of a bfloat16 element: the upper half of a float32.
struct Bfloat16 {
  uint16_t bits;
};

LEAT_PIXEL uint32_t BitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
LEAT_PIXEL float FloatOf(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Returns IEEE binary16, rounded to the nearest, halves to even. A NaN becomes
// 0x7e00 with its sign.
LEAT_PIXEL uint16_t HalfOf(float value) {
  const uint32_t bits = BitsOf(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u)  // rounds to 65536 or more
    return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal
    if (magnitude < 0x33000000u) return static_cast<uint16_t>(sign);
    const uint32_t shift = 126 - (magnitude >> 23);  // 14 … 24
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t half = mantissa >> shift;
    const uint32_t rest = mantissa & ((1u << shift) - 1);
    const uint32_t middle = 1u << (shift - 1);
    const uint32_t up = rest > middle || (rest == middle && (half & 1));
    return static_cast<uint16_t>(sign | (half + up));
  }
  const uint32_t rebased = magnitude - 0x38000000u;
  return static_cast<uint16_t>(
      sign | ((rebased + 0xfffu + ((rebased >> 13) & 1)) >> 13));
}

LEAT_PIXEL float FloatOfHalf(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 31u;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 31) return FloatOf(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return FloatOf(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1.0p-24f;
  return FloatOf(sign | BitsOf(magnitude));
}

// Returns bfloat16, rounded to the nearest, halves to even: numbers beyond the
// greatest become infinite. A NaN becomes 0x7fc0 with its sign.
LEAT_PIXEL uint16_t Bfloat16Of(float value) {
  const uint32_t bits = BitsOf(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>((bits >> 16 & 0x8000u) | 0x7fc0u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

LEAT_PIXEL float FloatOfBfloat16(uint16_t bits) {
  return FloatOf(uint32_t{bits} << 16);
}

// Replaces every NaN by one, since processors differ in the NaN they compute,
// and in which of two operands they keep.
LEAT_PIXEL float OneNan(float x) { return x == x ? x : FloatOf(0x7fc00000u); }
template <class T>
LEAT_PIXEL T OneNan(T x) {
  return x;
}

// Returns (x - mean) × factor + shift, with each step rounded to float.
LEAT_PIXEL float Normalized(float x, float mean, float factor, float shift) {
  const float centred = x - mean;
  const float scaled = centred * factor;
  const float shifted = scaled + shift;
  return OneNan(shifted);
}

// Returns the nearest integer, halves to even, within [least, greatest]; 0 for
// a NaN. REQUIRES: both bounds are exact in double, or one over the largest
// one.
LEAT_PIXEL int64_t SaturatedInt(double x, int64_t least, int64_t greatest) {
  if (!(x == x)) return 0;
  if (x <= static_cast<double>(least)) return least;
  if (x >= static_cast<double>(greatest)) return greatest;
  if (x >= 0x1.0p52 || x <= -0x1.0p52) return static_cast<int64_t>(x);
  int64_t down = static_cast<int64_t>(x);  // towards zero
  if (static_cast<double>(down) > x) --down;
  const double rest = x - static_cast<double>(down);
  const bool up = rest > 0.5 || (rest == 0.5 && (down & 1) != 0);
  return down + (up ? 1 : 0);
}

// Returns an element as a float, as normalize computes with it.
template <class T>
LEAT_PIXEL float ToFloat(T value) {
  if constexpr (std::is_same_v<T, Half>)
    return FloatOfHalf(value.bits);
  else if constexpr (std::is_same_v<T, Bfloat16>)
    return FloatOfBfloat16(value.bits);
  else
    return static_cast<float>(value);
}

// The limits as constants, since device code cannot call functions of the
// standard library.
template <class Integer>
struct RangeOf {
  // int8_t is a number here, not a character.
  // NOLINTNEXTLINE(bugprone-signed-char-misuse)
  static constexpr int64_t kLeast = std::numeric_limits<Integer>::min();
  // NOLINTNEXTLINE(bugprone-signed-char-misuse)
  static constexpr int64_t kGreatest = std::numeric_limits<Integer>::max();
};

// Casts: to float32 the nearest; to float16 and bfloat16 the one nearest to
// that float32, infinite beyond their greatest; to bool whether it is not 0; to
// integers the nearest, halves to even, saturated, 0 for a NaN.
template <class Out, class In>
LEAT_PIXEL Out Converted(In value) {
  if constexpr (std::is_same_v<Out, Half>) {
    return Half{HalfOf(ToFloat(value))};
  } else if constexpr (std::is_same_v<Out, Bfloat16>) {
    return Bfloat16{Bfloat16Of(ToFloat(value))};
  } else if constexpr (std::is_same_v<Out, float>) {
    return ToFloat(value);
  } else if constexpr (std::is_same_v<Out, bool>) {
    if constexpr (std::is_integral_v<In>)
      return value != 0;
    else
      return ToFloat(value) != 0;
  } else {
    constexpr int64_t kLeast = RangeOf<Out>::kLeast;
    constexpr int64_t kGreatest = RangeOf<Out>::kGreatest;
    if constexpr (std::is_integral_v<In>) {
      // NOLINTNEXTLINE(bugprone-signed-char-misuse)
      const int64_t wide = static_cast<int64_t>(value);
      return static_cast<Out>(wide < kLeast      ? kLeast
                              : wide > kGreatest ? kGreatest
                                                 : wide);
    } else {
      return static_cast<Out>(SaturatedInt(ToFloat(value), kLeast, kGreatest));
    }
  }
}

// Returns a constant of a pipeline as an element. An integer keeps all digits
// that the double has, a bool is whether it is not 0, and other types are made
// by way of float32.
template <class T>
LEAT_PIXEL T FromConstant(double value) {
  if constexpr (std::is_same_v<T, bool>)
    return value != 0;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(
        SaturatedInt(value, RangeOf<T>::kLeast, RangeOf<T>::kGreatest));
  else
    return Converted<T>(static_cast<float>(value));
}

// Calls `use` with a value of the type in which `dtype` is stored. Host only.
template <class Use>
void WithStorage(DType dtype, Use use) {
  switch (dtype) {
    case DType::kBool:
      return use(bool{});
    case DType::kUint8:
      return use(uint8_t{});
    case DType::kInt32:
      return use(int32_t{});
    case DType::kInt64:
      return use(int64_t{});
    case DType::kFloat16:
      return use(Half{});
    case DType::kFloat32:
      return use(float{});
    case DType::kInt8:
      return use(int8_t{});
    case DType::kInt16:
      return use(int16_t{});
    case DType::kUint16:
      return use(uint16_t{});
    case DType::kUint32:
      return use(uint32_t{});
    case DType::kBfloat16:
      return use(Bfloat16{});
  }
}

// The same without code for types that are only carried. REQUIRES:
// !IsCarried(dtype), which Check() ensures for what operators compute with.
template <class Use>
void WithComputed(DType dtype, Use use) {
  WithStorage(dtype, [&use]<class T>(T value) {
    if constexpr (!std::is_same_v<T, int8_t> && !std::is_same_v<T, int16_t> &&
                  !std::is_same_v<T, uint16_t> &&
                  !std::is_same_v<T, uint32_t> && !std::is_same_v<T, Bfloat16>)
      use(value);
  });
}

}  // namespace leat
