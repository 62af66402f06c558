// SPDX-License-Identifier: Apache-2.0
//
// Indices stand in lanes, each with its key, masks and bound, and a network
// runs over all lanes at once. It makes the keys of its rounds as it goes: that
// costs less than to keep them. A lane whose result is under its n is done, and
// the next index takes its place; the others pass through again. When no index
// is left, the lanes that are not done move to the front. Permutations of 12
// and of 24 rounds never share lanes.
#include "core/random/permute_each.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "core/random/feistel.h"

namespace leat {
namespace {

constexpr uint32_t kLanes = 128;
// SIMD code computes so many lanes at a time.
constexpr uint32_t kWidth = 8, kWideWidth = 16;
static_assert(kLanes % kWideWidth == 0);

struct LaneBlock {
  uint32_t rounds = 0;
  uint32_t count = 0;  // lanes in use
  alignas(32) uint32_t left[kLanes], right[kLanes];
  alignas(32) uint32_t left_mask[kLanes], right_mask[kLanes];
  alignas(32) uint64_t key[kLanes];
  uint32_t right_bits[kLanes];
  uint64_t n[kLanes];
  uint64_t* index[kLanes];
};

using EncryptLanes = void (*)(LaneBlock*);

void EncryptLanesScalar(LaneBlock* lanes) {
  for (uint32_t i = 0; i < lanes->count; ++i) {
    uint32_t l = lanes->left[i], r = lanes->right[i];
    for (uint32_t round = 0; round < lanes->rounds; round += 2) {
      const uint64_t keys = RoundKeys(lanes->key[i], round);
      l ^= RoundFunction(r, static_cast<uint32_t>(keys)) & lanes->left_mask[i];
      r ^= RoundFunction(l, static_cast<uint32_t>(keys >> 32)) &
           lanes->right_mask[i];
    }
    lanes->left[i] = l;
    lanes->right[i] = r;
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) inline __m256i Broadcast(uint64_t value) {
  return _mm256_set1_epi64x(static_cast<int64_t>(value));
}

// Returns the low halves of products of 64 bits.
__attribute__((target("avx2"))) inline __m256i Multiply4(__m256i x,
                                                         uint64_t by) {
  const __m256i low = _mm256_mul_epu32(x, Broadcast(by));
  const __m256i high = _mm256_add_epi64(
      _mm256_mul_epu32(x, Broadcast(by >> 32)),
      _mm256_mul_epu32(_mm256_srli_epi64(x, 32), Broadcast(by)));
  return _mm256_add_epi64(low, _mm256_slli_epi64(high, 32));
}

// Mix64 of four numbers.
__attribute__((target("avx2"))) inline __m256i Mix4(__m256i x) {
  x = _mm256_xor_si256(x, _mm256_srli_epi64(x, 30));
  x = Multiply4(x, kMixMultiplier1);
  x = _mm256_xor_si256(x, _mm256_srli_epi64(x, 27));
  x = Multiply4(x, kMixMultiplier2);
  return _mm256_xor_si256(x, _mm256_srli_epi64(x, 31));
}

// Computes lanes beyond `count`, too; they are unused. Of eight lanes' keys,
// `a` has lanes 0, 1, 4 and 5, and `b` the others, so that a shuffle brings
// their halves into the order of lanes.
__attribute__((target("avx2"))) void EncryptLanesAvx2(LaneBlock* lanes) {
  constexpr int kLowHalves = 0x88, kHighHalves = 0xDD;
  for (uint32_t i = 0; i < lanes->count; i += kWidth) {
    const auto* keys = reinterpret_cast<const __m256i*>(lanes->key + i);
    const __m256i first = _mm256_load_si256(keys);
    const __m256i last = _mm256_load_si256(keys + 1);
    __m256i a = _mm256_permute2x128_si256(first, last, 0x20);
    __m256i b = _mm256_permute2x128_si256(first, last, 0x31);
    const __m256i left_mask = _mm256_load_si256(Lanes(lanes->left_mask + i));
    const __m256i right_mask = _mm256_load_si256(Lanes(lanes->right_mask + i));
    __m256i l = _mm256_load_si256(Lanes(lanes->left + i));
    __m256i r = _mm256_load_si256(Lanes(lanes->right + i));
    for (uint32_t round = 0; round < lanes->rounds; round += 2) {
      a = _mm256_add_epi64(a, Broadcast(kGolden));
      b = _mm256_add_epi64(b, Broadcast(kGolden));
      const __m256 of_a = _mm256_castsi256_ps(Mix4(a));
      const __m256 of_b = _mm256_castsi256_ps(Mix4(b));
      const __m256i key =
          _mm256_castps_si256(_mm256_shuffle_ps(of_a, of_b, kLowHalves));
      const __m256i next =
          _mm256_castps_si256(_mm256_shuffle_ps(of_a, of_b, kHighHalves));
      l = _mm256_xor_si256(l,
                           _mm256_and_si256(RoundFunction8(r, key), left_mask));
      r = _mm256_xor_si256(
          r, _mm256_and_si256(RoundFunction8(l, next), right_mask));
    }
    _mm256_store_si256(Lanes(lanes->left + i), l);
    _mm256_store_si256(Lanes(lanes->right + i), r);
  }
}

#define LEAT_AVX512 __attribute__((target("avx512f,avx512dq")))

// The intrinsics for these make GCC 12 warn.
LEAT_AVX512 inline __m512i Right64(__m512i x, int bits) {
  return reinterpret_cast<__m512i>(reinterpret_cast<__v8du>(x) >> bits);
}
LEAT_AVX512 inline __m512i Right32(__m512i x, int bits) {
  return reinterpret_cast<__m512i>(reinterpret_cast<__v16su>(x) >> bits);
}

// Mix64 of eight numbers.
LEAT_AVX512 inline __m512i Mix8(__m512i x) {
  x = _mm512_xor_si512(x, Right64(x, 30));
  x = _mm512_mullo_epi64(
      x, _mm512_set1_epi64(static_cast<int64_t>(kMixMultiplier1)));
  x = _mm512_xor_si512(x, Right64(x, 27));
  x = _mm512_mullo_epi64(
      x, _mm512_set1_epi64(static_cast<int64_t>(kMixMultiplier2)));
  return _mm512_xor_si512(x, Right64(x, 31));
}

LEAT_AVX512 inline __m512i RoundFunction16(__m512i half, __m512i key) {
  __m512i x = _mm512_add_epi32(half, key);
  x = _mm512_xor_si512(x, Right32(x, 16));
  x = _mm512_mullo_epi32(x, _mm512_set1_epi32(int{kMultiplier1}));
  x = _mm512_xor_si512(x, Right32(x, 15));
  x = _mm512_mullo_epi32(x, _mm512_set1_epi32(static_cast<int>(kMultiplier2)));
  return _mm512_xor_si512(x, Right32(x, 16));
}

// Does the same for 16 lanes at a time; keys stand in the order of lanes.
LEAT_AVX512 void EncryptLanesAvx512(LaneBlock* lanes) {
  const __m512i low_halves = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16,
                                               18, 20, 22, 24, 26, 28, 30);
  const __m512i high_halves =
      _mm512_add_epi32(low_halves, _mm512_set1_epi32(1));
  const __m512i golden = _mm512_set1_epi64(static_cast<int64_t>(kGolden));
  for (uint32_t i = 0; i < lanes->count; i += kWideWidth) {
    __m512i a = _mm512_loadu_si512(lanes->key + i);
    __m512i b = _mm512_loadu_si512(lanes->key + i + 8);
    const __m512i left_mask = _mm512_loadu_si512(lanes->left_mask + i);
    const __m512i right_mask = _mm512_loadu_si512(lanes->right_mask + i);
    __m512i l = _mm512_loadu_si512(lanes->left + i);
    __m512i r = _mm512_loadu_si512(lanes->right + i);
    for (uint32_t round = 0; round < lanes->rounds; round += 2) {
      a = _mm512_add_epi64(a, golden);
      b = _mm512_add_epi64(b, golden);
      const __m512i of_a = Mix8(a), of_b = Mix8(b);
      const __m512i key = _mm512_permutex2var_epi32(of_a, low_halves, of_b);
      const __m512i next = _mm512_permutex2var_epi32(of_a, high_halves, of_b);
      l = _mm512_xor_si512(
          l, _mm512_and_si512(RoundFunction16(r, key), left_mask));
      r = _mm512_xor_si512(
          r, _mm512_and_si512(RoundFunction16(l, next), right_mask));
    }
    _mm512_storeu_si512(lanes->left + i, l);
    _mm512_storeu_si512(lanes->right + i, r);
  }
}
#undef LEAT_AVX512
#endif

uint64_t ResultOf(const LaneBlock& lanes, uint32_t i) {
  return (uint64_t{lanes.left[i]} << lanes.right_bits[i]) | lanes.right[i];
}

// The lanes that the next indices take.
struct OpenLanes {
  uint32_t count = 0;
  uint32_t lane[kLanes];
};

// Passes all lanes through their networks once, and opens those that are done.
void PassOnce(EncryptLanes encrypt, LaneBlock* lanes, OpenLanes* open) {
  encrypt(lanes);
  for (uint32_t i = 0; i < lanes->count; ++i) {
    const uint64_t result = ResultOf(*lanes, i);
    *lanes->index[i] = result;
    open->lane[open->count] = i;
    open->count += result < lanes->n[i];
  }
}

// Passes all lanes through their networks once, and keeps those that are not
// done.
void PassAndClose(EncryptLanes encrypt, LaneBlock* lanes) {
  encrypt(lanes);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < lanes->count; ++i) {
    const uint64_t result = ResultOf(*lanes, i);
    const bool done = result < lanes->n[i];
    *lanes->index[i] = result;
    lanes->left[kept] = lanes->left[i];
    lanes->right[kept] = lanes->right[i];
    lanes->left_mask[kept] = lanes->left_mask[i];
    lanes->right_mask[kept] = lanes->right_mask[i];
    lanes->key[kept] = lanes->key[i];
    lanes->right_bits[kept] = lanes->right_bits[i];
    lanes->n[kept] = lanes->n[i];
    lanes->index[kept] = lanes->index[i];
    kept += !done;
  }
  lanes->count = kept;
}

// Passes all lanes but the open ones through until they are done.
void PassToTheEnd(EncryptLanes encrypt, const OpenLanes& open,
                  LaneBlock* lanes) {
  uint64_t unused = 0;
  for (uint32_t i = 0; i < open.count; ++i) {
    lanes->n[open.lane[i]] = ~uint64_t{0};
    lanes->index[open.lane[i]] = &unused;
  }
  while (lanes->count > 0) PassAndClose(encrypt, lanes);
}

void PermuteThoseOf(uint32_t rounds, EncryptLanes encrypt,
                    std::span<const PermutedIndices> list) {
  LaneBlock lanes;
  OpenLanes open;
  lanes.rounds = rounds;
  for (const PermutedIndices& permuted : list) {
    const auto bits = static_cast<uint32_t>(std::bit_width(permuted.n - 1));
    if (RoundsOf(bits) != rounds) continue;
    const uint32_t right_bits = bits / 2;
    const uint32_t right_mask = (uint32_t{1} << right_bits) - 1;
    const uint32_t left_mask = (uint32_t{1} << (bits - right_bits)) - 1;
    for (uint64_t& index : permuted.indices) {
      while (lanes.count == kLanes && open.count == 0)
        PassOnce(encrypt, &lanes, &open);
      const uint32_t i =
          open.count > 0 ? open.lane[--open.count] : lanes.count++;
      lanes.left[i] = static_cast<uint32_t>(index >> right_bits);
      lanes.right[i] = static_cast<uint32_t>(index) & right_mask;
      lanes.left_mask[i] = left_mask;
      lanes.right_mask[i] = right_mask;
      lanes.key[i] = permuted.key;
      lanes.right_bits[i] = right_bits;
      lanes.n[i] = permuted.n;
      lanes.index[i] = &index;
    }
  }
  PassToTheEnd(encrypt, open, &lanes);
}

template <EncryptLanes encrypt>
void PermuteBy(std::span<const PermutedIndices> list) {
  for (const uint32_t rounds : {kUsualRounds, kMostRounds})
    PermuteThoseOf(rounds, encrypt, list);
  for (const PermutedIndices& permuted : list)
    if (permuted.begin != 0)
      for (uint64_t& index : permuted.indices) index += permuted.begin;
}

}  // namespace

std::vector<PermuteFunction> PermuteFunctions() {
  std::vector<PermuteFunction> functions = {&PermuteBy<EncryptLanesScalar>};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2"))
    functions.push_back(&PermuteBy<EncryptLanesAvx2>);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
    functions.push_back(&PermuteBy<EncryptLanesAvx512>);
#endif
  return functions;
}

void PermuteEach(std::span<const PermutedIndices> list) {
  static const PermuteFunction fastest = PermuteFunctions().back();
  fastest(list);
}

}  // namespace leat
