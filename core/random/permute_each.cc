// SPDX-License-Identifier: Apache-2.0
//
// Indices stand in lanes, each with its key, masks and bound, and a network
// runs over all lanes at once. It makes the keys of its rounds as it goes: that
// costs less than to keep them. A lane whose result is under its n is done; the
// others move to the front and pass through again, together with the indices
// that come next. Permutations of 12 and of 24 rounds never share lanes.
#include "core/random/permute_each.h"

#include <algorithm>
#include <bit>

#include "core/random/feistel.h"

namespace leat {
namespace {

constexpr uint32_t kLanes = 128;
// SIMD code computes so many lanes at a time.
constexpr uint32_t kWidth = 8;
static_assert(kLanes % kWidth == 0);

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
#endif

EncryptLanes BestEncryptLanes() {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return &EncryptLanesAvx2;
#endif
  return &EncryptLanesScalar;
}

// Passes all lanes through their networks once, and keeps those that are not
// done.
void PassOnce(EncryptLanes encrypt, LaneBlock* lanes) {
  encrypt(lanes);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < lanes->count; ++i) {
    const uint64_t result =
        (uint64_t{lanes->left[i]} << lanes->right_bits[i]) | lanes->right[i];
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

void PermuteThoseOf(uint32_t rounds, EncryptLanes encrypt,
                    std::span<const PermutedIndices> list) {
  LaneBlock lanes;
  lanes.rounds = rounds;
  for (const PermutedIndices& permuted : list) {
    const auto bits = static_cast<uint32_t>(std::bit_width(permuted.n - 1));
    if (RoundsOf(bits) != rounds) continue;
    const uint32_t right_bits = bits / 2;
    const uint32_t right_mask = (uint32_t{1} << right_bits) - 1;
    const uint32_t left_mask = (uint32_t{1} << (bits - right_bits)) - 1;
    for (uint64_t& index : permuted.indices) {
      const uint32_t i = lanes.count++;
      lanes.left[i] = static_cast<uint32_t>(index >> right_bits);
      lanes.right[i] = static_cast<uint32_t>(index) & right_mask;
      lanes.left_mask[i] = left_mask;
      lanes.right_mask[i] = right_mask;
      lanes.key[i] = permuted.key;
      lanes.right_bits[i] = right_bits;
      lanes.n[i] = permuted.n;
      lanes.index[i] = &index;
      if (lanes.count == kLanes) PassOnce(encrypt, &lanes);
    }
  }
  while (lanes.count > 0) PassOnce(encrypt, &lanes);
}

}  // namespace

void PermuteEach(std::span<const PermutedIndices> list) {
  const EncryptLanes encrypt = BestEncryptLanes();
  for (const uint32_t rounds : {kUsualRounds, kMostRounds})
    PermuteThoseOf(rounds, encrypt, list);
}

}  // namespace leat
