// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of two values of one type: the same bits with every compiler
// and device. Integers wrap around, as in two's complement; any computed NaN is
// 0x7fc00000. Types: uint8_t (also bool), int32_t, int64_t, float.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/tensor/pointwise.h"

namespace leat::worker {

template <class T>
struct WrapOf {
  using Type = std::make_unsigned_t<T>;
};
template <>
struct WrapOf<float> {
  using Type = float;
};

struct Sum {
  template <class T>
  static LEAT_PIXEL T Of(T a, T b) {
    using Wrap = typename WrapOf<T>::Type;
    return OneNan(static_cast<T>(static_cast<Wrap>(a) + static_cast<Wrap>(b)));
  }
};
struct Difference {
  template <class T>
  static LEAT_PIXEL T Of(T a, T b) {
    using Wrap = typename WrapOf<T>::Type;
    return OneNan(static_cast<T>(static_cast<Wrap>(a) - static_cast<Wrap>(b)));
  }
};
struct Product {
  template <class T>
  static LEAT_PIXEL T Of(T a, T b) {
    using Wrap = typename WrapOf<T>::Type;
    return OneNan(static_cast<T>(static_cast<Wrap>(a) * static_cast<Wrap>(b)));
  }
};
struct Quotient {
  static LEAT_PIXEL float Of(float a, float b) { return OneNan(a / b); }
};
// The quotient, rounded down. REQUIRES: b != 0.
struct WholeQuotient {
  template <class T>
  static LEAT_PIXEL T Of(T a, T b) {
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return Difference::Of(T{0}, a);  // the least value wraps
    const T towards_zero = static_cast<T>(a / b);
    const bool inexact = static_cast<T>(towards_zero * b) != a;
    return static_cast<T>(towards_zero - (inexact && (a < 0) != (b < 0)));
  }
};
struct Least {
  template <class T>
  static LEAT_PIXEL T Of(T a, T b) {
    return b < a ? b : a;
  }
};
struct Greatest {
  template <class T>
  static LEAT_PIXEL T Of(T a, T b) {
    return a < b ? b : a;
  }
};

// Takes one value; the second is ignored.
struct Negative {
  template <class T>
  static LEAT_PIXEL T Of(T a, T) {
    if constexpr (std::is_floating_point_v<T>)
      return FloatOf(BitsOf(a) ^ 0x80000000u);  // for a NaN, too
    else
      return Difference::Of(T{0}, a);
  }
};
struct Magnitude {
  template <class T>
  static LEAT_PIXEL T Of(T a, T) {
    if constexpr (std::is_floating_point_v<T>)
      return FloatOf(BitsOf(a) & 0x7fffffffu);
    else
      return a < 0 ? Difference::Of(T{0}, a) : a;
  }
};

// Comparisons give 1 or 0.
struct IsLess {
  template <class T>
  static LEAT_PIXEL uint8_t Of(T a, T b) {
    return a < b;
  }
};
struct IsLessOrEqual {
  template <class T>
  static LEAT_PIXEL uint8_t Of(T a, T b) {
    return a <= b;
  }
};
struct IsEqual {
  template <class T>
  static LEAT_PIXEL uint8_t Of(T a, T b) {
    return a == b;
  }
};
struct IsNotEqual {
  template <class T>
  static LEAT_PIXEL uint8_t Of(T a, T b) {
    return a != b;
  }
};

struct BitsAnd {
  template <class T>
  static LEAT_PIXEL T Of(T a, T b) {
    return a & b;
  }
};
struct BitsOr {
  template <class T>
  static LEAT_PIXEL T Of(T a, T b) {
    return a | b;
  }
};
struct BitsXor {
  template <class T>
  static LEAT_PIXEL T Of(T a, T b) {
    return a ^ b;
  }
};

}  // namespace leat::worker
