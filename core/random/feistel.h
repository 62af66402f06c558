// SPDX-License-Identifier: Apache-2.0
//
// The parts of the Feistel networks of permutations (permutation.h,
// permute_each.h): their rounds, the keys of these, and the round function.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace leat {

// The multipliers of Mix64.
inline constexpr uint64_t kMixMultiplier1 = 0xBF58476D1CE4E5B9;
inline constexpr uint64_t kMixMultiplier2 = 0x94D049BB133111EB;

// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
inline uint64_t Mix64(uint64_t x) {
  x ^= x >> 30;
  x *= kMixMultiplier1;
  x ^= x >> 27;
  x *= kMixMultiplier2;
  return x ^ (x >> 31);
}

inline constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio

// The fewer values a half has, the more rounds are needed until all
// permutations are equally likely.
inline constexpr uint32_t kSmallBits = 16;
inline constexpr uint32_t kUsualRounds = 12, kMostRounds = 24;

// Returns the rounds for indices of so many bits.
inline uint32_t RoundsOf(uint32_t bits) {
  return bits <= kSmallBits ? kMostRounds : kUsualRounds;
}

// Returns the keys of two rounds: that of `round`, which is even, in the low
// half, and that of the next one above it.
inline uint64_t RoundKeys(uint64_t key, uint32_t round) {
  return Mix64(key + (round / 2 + 1) * kGolden);
}

// The multipliers of the round function, a 32-bit mixer of low bias (C.
// Wellons, "hash prospector").
inline constexpr uint32_t kMultiplier1 = 0x7FEB352D;
inline constexpr uint32_t kMultiplier2 = 0x846CA68B;

inline uint32_t RoundFunction(uint32_t half, uint32_t key) {
  uint32_t x = half + key;
  x ^= x >> 16;
  x *= kMultiplier1;
  x ^= x >> 15;
  x *= kMultiplier2;
  return x ^ (x >> 16);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) inline __m256i RoundFunction8(__m256i half,
                                                              __m256i key) {
  __m256i x = _mm256_add_epi32(half, key);
  x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 16));
  x = _mm256_mullo_epi32(x, _mm256_set1_epi32(int{kMultiplier1}));
  x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 15));
  x = _mm256_mullo_epi32(x, _mm256_set1_epi32(static_cast<int>(kMultiplier2)));
  return _mm256_xor_si256(x, _mm256_srli_epi32(x, 16));
}

__attribute__((target("avx2"))) inline __m256i RoundFunction8(__m256i half,
                                                              uint32_t key) {
  return RoundFunction8(half, _mm256_set1_epi32(static_cast<int>(key)));
}

inline __m256i* Lanes(uint32_t* words) {
  return reinterpret_cast<__m256i*>(words);
}

#endif

}  // namespace leat
