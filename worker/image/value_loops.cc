// SPDX-License-Identifier: Apache-2.0
//
// Each body is written once and compiled twice; the compiler makes vectors of
// it. No step depends on the width, so the bits are the same.
#include "worker/image/value_loops.h"

#include <bit>
#include <cmath>

#include "worker/image/simd.h"
#include "worker/image/tensor_ops.h"

namespace leat::worker {
namespace {

// ByteOf of what is not a NaN, as far fewer instructions: adding 2^23 rounds,
// and of the sums, which are ordered as their bits are, the last byte is that
// of the number.
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
    // A constant that is a NaN would make every result one.
    const float scale = std::isnan(constant) ? 0 : factor;
    const float shift = std::isnan(constant) ? 0 : constant;
    for (size_t i = 0; i < count; ++i)
      out[i] = ByteOfNumber(Linear(static_cast<float>(in[i]), scale, shift));
  }
};

struct LinearFloats {
  LEAT_BODY static void Run(const float* in, size_t count, float factor,
                            float constant, float* out) {
    for (size_t i = 0; i < count; ++i) out[i] = Linear(in[i], factor, constant);
  }
};

LEAT_BODY uint8_t Stored(float x, uint8_t) { return ByteOfNumber(x); }
LEAT_BODY float Stored(float x, float) { return x; }

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

}  // namespace

void ConvertValues(const std::byte* in, DType from, size_t count, DType to,
                   std::byte* out) {
  // Read only.
  Cast({from, 1, {static_cast<int64_t>(count)}, const_cast<std::byte*>(in)}, to,
       out);
}

const ValueLoops& PlainValueLoops() {
  static constexpr ValueLoops kLoops = {
      Plain<BytesToFloats>::Run,   Plain<FloatsToBytes>::Run,
      Plain<LinearBytes>::Run,     Plain<LinearFloats>::Run,
      Plain<Matrix<uint8_t>>::Run, Plain<Matrix<float>>::Run,
      Plain<GrayBytes>::Run};
  return kLoops;
}

const ValueLoops& BestValueLoops() {
  static constexpr ValueLoops kAvx2 = {
      Avx2<BytesToFloats>::Run,   Avx2<FloatsToBytes>::Run,
      Avx2<LinearBytes>::Run,     Avx2<LinearFloats>::Run,
      Avx2<Matrix<uint8_t>>::Run, Avx2<Matrix<float>>::Run,
      Avx2<GrayBytes>::Run};
  static const ValueLoops& best = HasAvx2() ? kAvx2 : PlainValueLoops();
  return best;
}

}  // namespace leat::worker
