// SPDX-License-Identifier: Apache-2.0
//
// Every cast between two of the eleven types, against a slow reference: values
// are exact in long double, and the nearest number of 16 bits is searched for
// among all of them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/tensor/pointwise.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using Exact = long double;

// The form of a float of 16 bits.
struct Form {
  int exponent_bits, mantissa_bits;
};
constexpr Form kHalf = {5, 10}, kBrain = {8, 7};

Exact Decoded(uint16_t bits, Form form) {
  const int most = (1 << form.exponent_bits) - 1, bias = most / 2;
  const int exponent = bits >> form.mantissa_bits & most;
  const int mantissa = bits & ((1 << form.mantissa_bits) - 1);
  Exact value = 0;
  if (exponent == most)
    value = mantissa != 0 ? NAN : INFINITY;
  else if (exponent == 0)
    value = std::ldexp(Exact(mantissa), 1 - bias - form.mantissa_bits);
  else
    value = std::ldexp(Exact(mantissa + (1 << form.mantissa_bits)),
                       exponent - bias - form.mantissa_bits);
  return bits >> 15 != 0 ? -value : value;
}

// The number nearest to x, of two equally near the one with an even pattern.
// The number behind the greatest one counts as if it was finite.
uint16_t Nearest(Exact x, Form form) {
  const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
  const auto infinite = static_cast<uint16_t>(((1 << form.exponent_bits) - 1)
                                              << form.mantissa_bits);
  if (std::isnan(x))
    return static_cast<uint16_t>(sign | infinite |
                                 1 << (form.mantissa_bits - 1));
  const auto value = [&](int bits) {
    if (bits < infinite) return Decoded(static_cast<uint16_t>(bits), form);
    return 2 *
           Decoded(static_cast<uint16_t>(infinite - (1 << form.mantissa_bits)),
                   form);
  };
  int low = 0, high = infinite;  // positive patterns are ordered as numbers
  if (std::fabs(x) >= value(infinite)) return sign | infinite;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (value(middle) <= std::fabs(x) ? low : high) = middle;
  }
  const Exact below = std::fabs(x) - value(low),
              above = value(high) - std::fabs(x);
  const bool up = above < below || (above == below && (low & 1) != 0);
  return static_cast<uint16_t>(sign | (up ? high : low));
}

template <class T>
Exact ExactOf(T value) {
  if constexpr (std::is_same_v<T, Half>)
    return Decoded(value.bits, kHalf);
  else if constexpr (std::is_same_v<T, Bfloat16>)
    return Decoded(value.bits, kBrain);
  else
    return value;
}

template <class T>
bool SameBits(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Returns whether `got` is the cast of `in`.
template <class Out, class In>
bool IsCast(Out got, In in) {
  const Exact x = ExactOf(in);
  const auto single = static_cast<float>(x);
  if constexpr (std::is_same_v<Out, bool>) {
    return got == (x != 0);
  } else if constexpr (std::is_same_v<Out, float>) {
    return std::isnan(x) ? std::isnan(got) : SameBits(got, single);
  } else if constexpr (std::is_same_v<Out, Half>) {
    return got.bits == Nearest(single, kHalf);
  } else if constexpr (std::is_same_v<Out, Bfloat16>) {
    return got.bits == Nearest(single, kBrain);
  } else {
    using Range = std::numeric_limits<Out>;
    if (std::isnan(x)) return got == 0;
    return got == static_cast<Out>(std::clamp<Exact>(
                      std::nearbyint(x), Range::min(), Range::max()));
  }
}

template <class T>
std::vector<T> ValuesOf() {
  std::vector<T> values;
  if constexpr (sizeof(T) <= 2 && !std::is_same_v<T, bool>) {
    for (int bits = 0; bits < 1 << (8 * sizeof(T)); ++bits) {
      const bool edge = (bits + 1) % 128 <= 1 || bits < 256;
      if (!edge && bits % 5 != 0) continue;
      T value;
      std::memcpy(&value, &bits, sizeof value);
      values.push_back(value);
    }
  } else if constexpr (std::is_same_v<T, bool>) {
    values = {false, true};
  } else if constexpr (std::is_same_v<T, float>) {
    // The neighbourhood of all that is exact or halfway in 16 bits, of the
    // limits of whole numbers, and of halves.
    for (uint32_t high = 0; high < 0x10000; ++high)
      for (const uint32_t low :
           {0x0000u, 0x7fffu, 0x8000u, 0x8001u, 0x1000u, 0x1001u})
        if ((high + 1) % 128 <= 1 || high % 11 == low % 11)
          values.push_back(FloatOf(high << 16 | low));
  } else {
    using Wide = __int128;
    for (int shift = 0; shift < 64; ++shift)
      for (int add = -3; add <= 3; ++add)
        for (const int sign : {-1, 1}) {
          const Wide value = sign * ((Wide{1} << shift) + add);
          const Wide more = sign * ((Wide{3} << shift) / 2 + add);
          for (const Wide each : {value, more})
            if (each >= std::numeric_limits<T>::min() &&
                each <= std::numeric_limits<T>::max())
              values.push_back(static_cast<T>(each));
        }
    values.push_back(std::numeric_limits<T>::min());
    values.push_back(std::numeric_limits<T>::max());
  }
  return values;
}

TEST(PointwiseCasts, AreThoseOfTheReferenceBetweenAllTypes) {
  for (int from = 1; from <= static_cast<int>(kLastDType); ++from)
    for (int to = 1; to <= static_cast<int>(kLastDType); ++to)
      WithStorage(static_cast<DType>(from), [&]<class In>(In) {
        WithStorage(static_cast<DType>(to), [&]<class Out>(Out) {
          if constexpr (!std::is_same_v<In, Out>) {
            size_t wrong = 0;
            for (const In value : ValuesOf<In>()) {
              if (IsCast(Converted<Out>(value), value)) continue;
              if (++wrong == 1)
                ADD_FAILURE() << Name(static_cast<DType>(from)) << " "
                              << static_cast<double>(ExactOf(value)) << " to "
                              << Name(static_cast<DType>(to));
            }
          }
        });
      });
}

// Numbers that are checked by hand.
TEST(PointwiseCasts, RoundToBfloat16AsTheTableSays) {
  const auto bits = [](float x) { return Converted<Bfloat16>(x).bits; };
  EXPECT_EQ(bits(1.0f), 0x3f80);
  EXPECT_EQ(bits(-2.0f), 0xc000);
  EXPECT_EQ(bits(0.0f), 0x0000);
  EXPECT_EQ(bits(-0.0f), 0x8000);
  EXPECT_EQ(bits(3.14159274f), 0x4049);
  EXPECT_EQ(bits(1.00390625f), 0x3f80);      // half an ulp: to even, down
  EXPECT_EQ(bits(1.01171875f), 0x3f82);      // half an ulp: to even, up
  EXPECT_EQ(bits(1.00390637f), 0x3f81);      // just over a half
  EXPECT_EQ(bits(0x1.fep127f), 0x7f7f);      // the greatest
  EXPECT_EQ(bits(0x1.fffffep127f), 0x7f80);  // rounds to infinity
  EXPECT_EQ(bits(-INFINITY), 0xff80);
  EXPECT_EQ(bits(FloatOf(0x7f800001u)), 0x7fc0);  // no NaN becomes infinite
  EXPECT_EQ(bits(FloatOf(0xffffffffu)), 0xffc0);
  EXPECT_EQ(bits(0x1p-133f), 0x0001);  // the least
  EXPECT_EQ(bits(0x1p-134f), 0x0000);  // half of it: to even
  // By way of float32: 2^24 + 2^16 + 1 is 2^24 + 2^16 there, which is halfway.
  EXPECT_EQ(Converted<Bfloat16>((1 << 24) + (1 << 16) + 1).bits, 0x4b80);
}

TEST(PointwiseCasts, SaturateInNarrowTypes) {
  EXPECT_EQ(Converted<int8_t>(int32_t{128}), 127);
  EXPECT_EQ(Converted<int8_t>(-129.0f), -128);
  EXPECT_EQ(Converted<int16_t>(int64_t{1} << 40), 32767);
  EXPECT_EQ(Converted<uint16_t>(int32_t{-1}), 0);
  EXPECT_EQ(Converted<uint16_t>(65535.5f), 65535);
  EXPECT_EQ(Converted<uint32_t>(int64_t{1} << 32), UINT32_MAX);
  EXPECT_EQ(Converted<uint32_t>(4294967296.0f), UINT32_MAX);
  EXPECT_EQ(Converted<uint32_t>(NAN), 0u);
  EXPECT_EQ(Converted<int32_t>(UINT32_MAX), INT32_MAX);
  EXPECT_EQ(Converted<uint8_t>(Bfloat16{0x437f}), 255);
}

TEST(PointwiseCasts, ConstantsKeepTheDigitsOfIntegers) {
  EXPECT_EQ(FromConstant<int32_t>(16'777'217), 16'777'217);
  EXPECT_EQ(FromConstant<uint32_t>(4'294'967'295), UINT32_MAX);
  EXPECT_EQ(FromConstant<int64_t>(-0x1p53 + 1), -(int64_t{1} << 53) + 1);
  EXPECT_EQ(FromConstant<int64_t>(1e30), INT64_MAX);
  EXPECT_EQ(FromConstant<uint8_t>(2.5), 2);
  EXPECT_EQ(FromConstant<uint8_t>(2.5000000001), 3);
  EXPECT_EQ(FromConstant<int8_t>(-1e9), -128);
  EXPECT_EQ(FromConstant<bool>(1e-60), true);
  EXPECT_EQ(FromConstant<float>(16'777'217), 0x1p24f);
  EXPECT_EQ(FromConstant<Half>(1).bits, 0x3c00);
}

}  // namespace
}  // namespace leat
