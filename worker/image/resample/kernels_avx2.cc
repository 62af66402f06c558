// SPDX-License-Identifier: Apache-2.0
//
// The kernels in AVX2. Their sums equal the scalar ones: products of bytes and
// 16-bit weights, added two at a time in 32 bits (vpmaddwd).
#include <immintrin.h>

#include <cstring>

#include "worker/image/formulas/pixel.h"
#include "worker/image/resample/kernels.h"

#define LEAT_AVX2 __attribute__((target("avx2")))
#define LEAT_AVX2_INLINE __attribute__((target("avx2"), always_inline)) inline

namespace leat::worker {
namespace {

LEAT_AVX2_INLINE __m128i Load16(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
LEAT_AVX2_INLINE __m256i Load32(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
LEAT_AVX2_INLINE void Store16(uint8_t* p, __m128i v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v);
}
// Returns weights t and t + 1 in every pair of 16-bit lanes.
LEAT_AVX2_INLINE __m256i WeightPair(const int16_t* weights) {
  int32_t pair;
  memcpy(&pair, weights, sizeof pair);
  return _mm256_set1_epi32(pair);
}

// Four channels (32 bits each) of one output pixel of four rows: rows 0 and 1
// in the low and high half of `first`, rows 2 and 3 in those of `second`.
struct FourRows {
  __m256i first, second;
};

LEAT_AVX2_INLINE __m256i LoadTwo16(const uint8_t* low, const uint8_t* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(Load16(low)),
                                 Load16(high), 1);
}
LEAT_AVX2_INLINE __m256i LoadTwo8(const uint8_t* low, const uint8_t* high) {
  return _mm256_inserti128_si256(
      _mm256_castsi128_si256(
          _mm_loadl_epi64(reinterpret_cast<const __m128i*>(low))),
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(high)), 1);
}
LEAT_AVX2_INLINE __m256i AddTaps(__m256i sum, __m256i pixels, __m256i pick,
                                 __m256i weights) {
  return _mm256_add_epi32(
      sum, _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, pick), weights));
}

// `at`: offset in bytes of the first tap's pixel. kTaps 0: there are `taps`,
// any even number.
template <int kTaps>
LEAT_AVX2_INLINE FourRows OnePixel(const uint8_t* const in[kRowsAtOnce],
                                   size_t at, const int16_t* weights, int taps,
                                   __m256i rounding) {
  // Pixels 0 and 1, and 2 and 3, of each half as interleaved 16-bit channels.
  const __m256i pick01 = _mm256_setr_epi8(
      0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1,  //
      0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1);
  const __m256i pick23 = _mm256_setr_epi8(
      8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1,  //
      8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1);
  const int count = kTaps != 0 ? kTaps : taps;
  __m256i first = rounding, second = rounding;
  int t = 0;
  for (; t + 4 <= count; t += 4, at += 16) {
    const __m256i a = LoadTwo16(in[0] + at, in[1] + at);
    const __m256i b = LoadTwo16(in[2] + at, in[3] + at);
    const __m256i w01 = WeightPair(weights + t);
    const __m256i w23 = WeightPair(weights + t + 2);
    first = AddTaps(AddTaps(first, a, pick01, w01), a, pick23, w23);
    second = AddTaps(AddTaps(second, b, pick01, w01), b, pick23, w23);
  }
  if (t < count) {
    const __m256i w01 = WeightPair(weights + t);
    first = AddTaps(first, LoadTwo8(in[0] + at, in[1] + at), pick01, w01);
    second = AddTaps(second, LoadTwo8(in[2] + at, in[3] + at), pick01, w01);
  }
  return {first, second};
}

// Stores four pixels of two rows: 12 bytes per row, stored as 16.
LEAT_AVX2_INLINE void StoreRgb(__m256i a, __m256i b, __m256i c, __m256i d,
                               __m128i shift, uint8_t* low, uint8_t* high) {
  const __m256i drop_fourth = _mm256_setr_epi8(
      0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,  //
      0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  const __m256i ab = _mm256_packs_epi32(_mm256_sra_epi32(a, shift),
                                        _mm256_sra_epi32(b, shift));
  const __m256i cd = _mm256_packs_epi32(_mm256_sra_epi32(c, shift),
                                        _mm256_sra_epi32(d, shift));
  const __m256i rgb =
      _mm256_shuffle_epi8(_mm256_packus_epi16(ab, cd), drop_fourth);
  Store16(low, _mm256_castsi256_si128(rgb));
  Store16(high, _mm256_extracti128_si256(rgb, 1));
}

template <int kTaps>
LEAT_AVX2_INLINE void HorizontalLoop(const ResampleTable& table, int base,
                                     const uint8_t* const in[kRowsAtOnce],
                                     uint8_t* const out[kRowsAtOnce]) {
  const uint8_t* const rows[kRowsAtOnce] = {in[0], in[1], in[2], in[3]};
  const int taps = table.padded_taps();
  const size_t stride = table.stride();
  const __m128i shift = _mm_cvtsi32_si128(table.bits());
  const __m256i rounding = _mm256_set1_epi32(RoundingTerm(table.bits()));
  const int16_t* weights = table.weights(0);
  const ResampleTable::Entry* entry = &table.entry(0);
  const ResampleTable::Entry* const end = entry + table.size();
  uint8_t* out0 = out[0];
  uint8_t* out1 = out[1];
  uint8_t* out2 = out[2];
  uint8_t* out3 = out[3];
  for (; entry < end; entry += 4, weights += 4 * stride) {
    FourRows p[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      p[i] = OnePixel<kTaps>(rows, size_t{4} * (entry[i].start - base),
                             weights + i * stride, taps, rounding);
    StoreRgb(p[0].first, p[1].first, p[2].first, p[3].first, shift, out0, out1);
    StoreRgb(p[0].second, p[1].second, p[2].second, p[3].second, shift, out2,
             out3);
    out0 += 12;
    out1 += 12;
    out2 += 12;
    out3 += 12;
  }
}

LEAT_AVX2 void HorizontalRgbx(const ResampleTable& table, int base,
                              const uint8_t* const in[kRowsAtOnce],
                              uint8_t* const out[kRowsAtOnce]) {
  switch (table.padded_taps()) {
    case 2:
      return HorizontalLoop<2>(table, base, in, out);
    case 4:
      return HorizontalLoop<4>(table, base, in, out);
    case 6:
      return HorizontalLoop<6>(table, base, in, out);
    case 8:
      return HorizontalLoop<8>(table, base, in, out);
    default:
      return HorizontalLoop<0>(table, base, in, out);
  }
}

// Computes 32 output bytes. kPairs 0: there are `pairs`.
template <int kPairs>
LEAT_AVX2_INLINE void VerticalBlock(const uint8_t* const* rows,
                                    const int16_t* weights, int pairs,
                                    __m128i shift, __m256i rounding, size_t i,
                                    uint8_t* out) {
  const __m256i zero = _mm256_setzero_si256();
  __m256i s0 = rounding, s1 = rounding, s2 = rounding, s3 = rounding;
  const int count = kPairs != 0 ? kPairs : pairs;
  for (int p = 0; p < count; ++p) {
    const __m256i a = Load32(rows[2 * p] + i);
    const __m256i b = Load32(rows[2 * p + 1] + i);
    const __m256i w = WeightPair(weights + 2 * p);
    const __m256i low = _mm256_unpacklo_epi8(a, b);
    const __m256i high = _mm256_unpackhi_epi8(a, b);
    s0 = _mm256_add_epi32(
        s0, _mm256_madd_epi16(_mm256_unpacklo_epi8(low, zero), w));
    s1 = _mm256_add_epi32(
        s1, _mm256_madd_epi16(_mm256_unpackhi_epi8(low, zero), w));
    s2 = _mm256_add_epi32(
        s2, _mm256_madd_epi16(_mm256_unpacklo_epi8(high, zero), w));
    s3 = _mm256_add_epi32(
        s3, _mm256_madd_epi16(_mm256_unpackhi_epi8(high, zero), w));
  }
  const __m256i first = _mm256_packs_epi32(_mm256_sra_epi32(s0, shift),
                                           _mm256_sra_epi32(s1, shift));
  const __m256i second = _mm256_packs_epi32(_mm256_sra_epi32(s2, shift),
                                            _mm256_sra_epi32(s3, shift));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                      _mm256_packus_epi16(first, second));
}

template <int kPairs>
LEAT_AVX2_INLINE void VerticalLoop(const uint8_t* const* rows,
                                   const int16_t* weights, int pairs, int bits,
                                   size_t bytes, uint8_t* out) {
  const __m128i shift = _mm_cvtsi32_si128(bits);
  const __m256i rounding = _mm256_set1_epi32(RoundingTerm(bits));
  size_t i = 0;
  for (; i + 32 <= bytes; i += 32)
    VerticalBlock<kPairs>(rows, weights, pairs, shift, rounding, i, out);
  if (i < bytes)  // the last 32 once more, overlapping
    VerticalBlock<kPairs>(rows, weights, pairs, shift, rounding, bytes - 32,
                          out);
}

LEAT_AVX2 void Vertical(const uint8_t* const* rows, const int16_t* weights,
                        int taps, int bits, size_t bytes, uint8_t* out) {
  if (bytes < 32)
    return ScalarKernels().vertical(rows, weights, taps, bits, bytes, out);
  const int pairs = (taps + 1) / 2;
  switch (pairs) {
    case 1:
      return VerticalLoop<1>(rows, weights, pairs, bits, bytes, out);
    case 2:
      return VerticalLoop<2>(rows, weights, pairs, bits, bytes, out);
    case 3:
      return VerticalLoop<3>(rows, weights, pairs, bits, bytes, out);
    case 4:
      return VerticalLoop<4>(rows, weights, pairs, bits, bytes, out);
    default:
      return VerticalLoop<0>(rows, weights, pairs, bits, bytes, out);
  }
}

LEAT_AVX2 void Compact(const uint8_t* in, size_t pixels, uint8_t* out) {
  const __m128i drop_fourth =
      _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  size_t i = 0;
  for (; i + 6 <= pixels; i += 4)  // each store is 16 bytes for 12
    Store16(out + 3 * i, _mm_shuffle_epi8(Load16(in + 4 * i), drop_fourth));
  ScalarKernels().compact(in + 4 * i, pixels - i, out + 3 * i);
}

LEAT_AVX2 void Expand(const uint8_t* in, size_t pixels, uint8_t* out) {
  const __m128i spread =
      _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
  const __m128i opaque = _mm_set1_epi32(static_cast<int>(0xff000000u));
  size_t i = 0;
  for (; i + 6 <= pixels; i += 4)  // each load is 16 bytes, 12 of them used
    Store16(out + 4 * i,
            _mm_or_si128(_mm_shuffle_epi8(Load16(in + 3 * i), spread), opaque));
  ScalarKernels().expand(in + 3 * i, pixels - i, out + 4 * i);
}

}  // namespace

const Kernels* Avx2Kernels() {
  static const Kernels kernels = {
      "avx2",   HorizontalRgbx, ScalarKernels().horizontal_gray,
      Vertical, Compact,        Expand};
  return __builtin_cpu_supports("avx2") ? &kernels : nullptr;
}

}  // namespace leat::worker
