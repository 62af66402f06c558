// SPDX-License-Identifier: Apache-2.0
//
// Each body is written once and compiled twice; the compiler vectorises it. No
// step depends on the vectors' width, so the bits are the same.
#include "worker/image/loops/values.h"

#include <immintrin.h>

#include <bit>
#include <cmath>

#include "worker/image/base/simd.h"
#include "worker/image/loops/tensor.h"

namespace leat::worker {
namespace {

// ByteOf for a number that is not a NaN, with far fewer instructions: adding
// 2^23 rounds, the sums are ordered as their bits are, and the last byte of a
// sum is the number.
LEAT_BODY uint8_t ByteOfNumber(float x) {
  constexpr auto kZero = std::bit_cast<int32_t>(0x1p23f);
  const auto sum = std::bit_cast<int32_t>(x + 0x1p23f);
  const int32_t positive = sum > kZero ? sum : kZero;
  const int32_t bounded = positive < kZero + 255 ? positive : kZero + 255;
  return static_cast<uint8_t>(bounded);
}

struct BytesToFloats {
  LEAT_BODY static void Run(const uint8_t* in, size_t count, float* out) {
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]);
  }
};

struct FloatsToBytes {
  LEAT_BODY static void Run(const float* in, size_t count, uint8_t* out) {
    for (size_t i = 0; i < count; ++i) out[i] = ByteOf(in[i]);
  }
};

struct LinearBytes {
  LEAT_BODY static void Run(const uint8_t* in, size_t count, float factor,
                            float constant, uint8_t* out) {
    // A NaN as the constant would make every result a NaN.
    const float scale = std::isnan(constant) ? 0 : factor;
    const float shift = std::isnan(constant) ? 0 : constant;
    for (size_t i = 0; i < count; ++i)
      out[i] = ByteOfNumber(Linear(static_cast<float>(in[i]), scale, shift));
  }
};

struct LinearFloats {
  LEAT_BODY static void Run(const float* in, size_t count, float factor,
                            float constant, float* out) {
    for (size_t i = 0; i < count; ++i)
      out[i] = OneNan(Linear(in[i], factor, constant));
  }
};

LEAT_BODY uint8_t Stored(float x, uint8_t) { return ByteOfNumber(x); }
LEAT_BODY float Stored(float x, float) { return OneNan(x); }

template <class T>
struct Matrix {
  LEAT_BODY static void Run(const ColorMatrix& given, const T* in,
                            size_t pixels, T* out) {
    const ColorMatrix matrix = given;
    for (size_t i = 0; i < pixels; ++i) {
      const auto x0 = static_cast<float>(in[3 * i]);
      const auto x1 = static_cast<float>(in[3 * i + 1]);
      const auto x2 = static_cast<float>(in[3 * i + 2]);
      out[3 * i] = Stored(MatrixRow(matrix, 0, x0, x1, x2), T{});
      out[3 * i + 1] = Stored(MatrixRow(matrix, 1, x0, x1, x2), T{});
      out[3 * i + 2] = Stored(MatrixRow(matrix, 2, x0, x1, x2), T{});
    }
  }
};

struct GrayBytes {
  LEAT_BODY static void Run(const ColorMatrix& given, const uint8_t* in,
                            size_t pixels, uint8_t* out) {
    const ColorMatrix matrix = given;
    for (size_t i = 0; i < pixels; ++i)
      out[i] = ByteOfNumber(MatrixRow(matrix, 0, static_cast<float>(in[3 * i]),
                                      static_cast<float>(in[3 * i + 1]),
                                      static_cast<float>(in[3 * i + 2])));
  }
};

struct EveryThird {
  LEAT_BODY static void Run(const uint8_t* in, size_t count, uint8_t* out) {
    for (size_t i = 0; i < count; ++i) out[i] = in[3 * i];
  }
};

#define LEAT_AVX2 __attribute__((target("avx2")))

// Returns eight results of GrayBytes, as 32-bit numbers.
LEAT_AVX2 LEAT_BODY __m256i GrayOfEight(const uint8_t* in,
                                        const __m256 factors[3],
                                        __m256 constant) {
  const __m256i pixels = _mm256_inserti128_si256(
      _mm256_castsi128_si256(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(in))),
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 12)), 1);
  const __m256i first = _mm256_setr_epi8(
      0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1,  //
      0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1);
  const __m256i next = _mm256_set1_epi32(1);  // step to the next byte
  const __m256i second = _mm256_add_epi8(first, next);
  const __m256i third = _mm256_add_epi8(second, next);
  const auto term = [&](__m256i pick, int i) LEAT_AVX2 {
    return _mm256_mul_ps(factors[i],
                         _mm256_cvtepi32_ps(_mm256_shuffle_epi8(pixels, pick)));
  };
  const __m256 sum = _mm256_add_ps(
      _mm256_add_ps(_mm256_add_ps(term(first, 0), term(second, 1)),
                    term(third, 2)),
      constant);
  // The same as ByteOfNumber.
  const __m256i zero = _mm256_set1_epi32(std::bit_cast<int32_t>(0x1p23f));
  const __m256i most = _mm256_set1_epi32(std::bit_cast<int32_t>(0x1p23f) + 255);
  const __m256i rounded =
      _mm256_castps_si256(_mm256_add_ps(sum, _mm256_set1_ps(0x1p23f)));
  return _mm256_sub_epi32(
      _mm256_min_epi32(_mm256_max_epi32(rounded, zero), most), zero);
}

LEAT_AVX2 void GrayBytesByAvx2(const ColorMatrix& matrix, const uint8_t* in,
                               size_t pixels, uint8_t* out) {
  const __m256 factors[3] = {_mm256_set1_ps(matrix.m[0][0]),
                             _mm256_set1_ps(matrix.m[0][1]),
                             _mm256_set1_ps(matrix.m[0][2])};
  const __m256 constant = _mm256_set1_ps(matrix.constant[0]);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  size_t i = 0;
  for (; i + 34 <= pixels; i += 32) {  // 4 bytes beyond the pixels are read
    __m256i eight[4];
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; ++k)
      eight[k] = GrayOfEight(in + 3 * (i + 8 * k), factors, constant);
    const __m256i bytes =
        _mm256_packus_epi16(_mm256_packus_epi32(eight[0], eight[1]),
                            _mm256_packus_epi32(eight[2], eight[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        _mm256_permutevar8x32_epi32(bytes, order));
  }
  Plain<GrayBytes>::Run(matrix, in + 3 * i, pixels - i, out + i);
}

LEAT_AVX2 void EveryThirdByAvx2(const uint8_t* in, size_t count, uint8_t* out) {
  const __m128i of_first =
      _mm_setr_epi8(0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m128i of_second = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, 2, 5, 8, 11,
                                          14, -1, -1, -1, -1, -1);
  const __m128i of_third = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                         -1, 1, 4, 7, 10, 13);
  const auto load = [](const uint8_t* from) LEAT_AVX2 {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  };
  size_t i = 0;
  for (; i + 17 <= count; i += 16) {  // 2 bytes beyond the elements are read
    const uint8_t* const from = in + 3 * i;
    const __m128i bytes =
        _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(load(from), of_first),
                                  _mm_shuffle_epi8(load(from + 16), of_second)),
                     _mm_shuffle_epi8(load(from + 32), of_third));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), bytes);
  }
  Plain<EveryThird>::Run(in + 3 * i, count - i, out + i);
}

}  // namespace

void ConvertValues(const std::byte* in, DType from, size_t count, DType to,
                   std::byte* out) {
  // The const_cast is safe: Cast only reads `in`.
  Cast({from, 1, {static_cast<int64_t>(count)}, const_cast<std::byte*>(in)}, to,
       out);
}

const ValueLoops& PlainValueLoops() {
  static constexpr ValueLoops kLoops = {
      Plain<BytesToFloats>::Run,   Plain<FloatsToBytes>::Run,
      Plain<LinearBytes>::Run,     Plain<LinearFloats>::Run,
      Plain<Matrix<uint8_t>>::Run, Plain<Matrix<float>>::Run,
      Plain<GrayBytes>::Run,       Plain<EveryThird>::Run};
  return kLoops;
}

const ValueLoops& BestValueLoops() {
  static constexpr ValueLoops kAvx2 = {Avx2<BytesToFloats>::Run,
                                       Avx2<FloatsToBytes>::Run,
                                       Avx2<LinearBytes>::Run,
                                       Avx2<LinearFloats>::Run,
                                       Avx2<Matrix<uint8_t>>::Run,
                                       Avx2<Matrix<float>>::Run,
                                       GrayBytesByAvx2,
                                       EveryThirdByAvx2};
  static const ValueLoops& best = HasAvx2() ? kAvx2 : PlainValueLoops();
  return best;
}

}  // namespace leat::worker
