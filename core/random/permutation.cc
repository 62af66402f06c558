// SPDX-License-Identifier: Apache-2.0
//
// With b = bit_width(n - 1), an index is split into a left half of ⌈b/2⌉ bits
// and a right half of ⌊b/2⌋. Rounds alternately replace left by left ^ F(right)
// and right by right ^ F(left), which is a bijection of [0, 2^b) for any F. A
// result of n or more is passed through again until it is under n (a walk along
// its cycle, which contains the start, which is under n): a bijection of [0,
// n). Because 2^b < 2n, an index needs fewer than two passes on average.
//
// Example, n = 5, b = 3: if the network's cycles are (0 6 3)(1 5 7 4)(2), then
// 0 -> 6 -> 3, 3 -> 0, 1 -> 5 -> 7 -> 4, 4 -> 1, 2 -> 2.
#include "core/random/permutation.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/random/feistel.h"

namespace leat {
namespace {

// Indices that are processed at a time: they stay in the first-level cache.
constexpr size_t kBlock = 256;
// A block's arrays are padded to this: SIMD code computes up to so many indices
// at a time.
constexpr size_t kPadding = 32;
static_assert(kBlock % kPadding == 0);

// So few indices are mapped faster one by one.
constexpr size_t kFewIndices = 2;

#if defined(__x86_64__)
// Halves of up to three bits have eight values, and a register holds what the
// round function makes of all of them.
constexpr uint32_t kTableMask = 7;
#endif

}  // namespace

uint64_t MixSeed(uint64_t seed, uint64_t salt) {
  return Mix64((Mix64(salt + kGolden) ^ seed) + kGolden);
}

uint64_t MixEpoch(uint64_t mixed, uint64_t epoch) {
  return Mix64((mixed ^ epoch) + kGolden);
}

uint64_t MixKey(uint64_t seed, uint64_t epoch, uint64_t salt) {
  return MixEpoch(MixSeed(seed, salt), epoch);
}

Permutation::Permutation(uint64_t n, uint64_t key) : n_(n) {
  const uint32_t bits = static_cast<uint32_t>(std::bit_width(n - 1));
  right_bits_ = bits / 2;
  network_.right_mask = (uint32_t{1} << right_bits_) - 1;
  network_.left_mask = (uint32_t{1} << (bits - right_bits_)) - 1;
  network_.rounds = RoundsOf(bits);
  for (uint32_t round = 0; round < network_.rounds; round += 2) {
    const uint64_t word = RoundKeys(key, round);
    network_.keys[round] = static_cast<uint32_t>(word);
    network_.keys[round + 1] = static_cast<uint32_t>(word >> 32);
  }
}

void Permutation::EncryptScalar(const Network& network, uint32_t* left,
                                uint32_t* right, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t l = left[i], r = right[i];
    for (uint32_t round = 0; round < network.rounds; round += 2) {
      l ^= RoundFunction(r, network.keys[round]) & network.left_mask;
      r ^= RoundFunction(l, network.keys[round + 1]) & network.right_mask;
    }
    left[i] = l;
    right[i] = r;
  }
}

#if defined(__x86_64__)
namespace {

// For halves of at most kTableMask: looks the round function up. Processes 32
// indices at a time.
template <class Network>
__attribute__((target("avx2"))) void EncryptByTables(const Network& network,
                                                     uint32_t* left,
                                                     uint32_t* right,
                                                     uint64_t count) {
  constexpr int kChains = 4;
  const __m256i all = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i left_mask =
      _mm256_set1_epi32(static_cast<int>(network.left_mask));
  const __m256i right_mask =
      _mm256_set1_epi32(static_cast<int>(network.right_mask));
  for (uint64_t i = 0; i < count; i += 8 * kChains) {
    __m256i l[kChains], r[kChains];
    for (int c = 0; c < kChains; ++c) {
      l[c] = _mm256_loadu_si256(Lanes(left + i + 8 * c));
      r[c] = _mm256_loadu_si256(Lanes(right + i + 8 * c));
    }
    for (uint32_t round = 0; round < network.rounds; round += 2) {
      const __m256i of_right =
          _mm256_and_si256(RoundFunction8(all, network.keys[round]), left_mask);
      const __m256i of_left = _mm256_and_si256(
          RoundFunction8(all, network.keys[round + 1]), right_mask);
      for (int c = 0; c < kChains; ++c) {
        l[c] =
            _mm256_xor_si256(l[c], _mm256_permutevar8x32_epi32(of_right, r[c]));
        r[c] =
            _mm256_xor_si256(r[c], _mm256_permutevar8x32_epi32(of_left, l[c]));
      }
    }
    for (int c = 0; c < kChains; ++c) {
      _mm256_storeu_si256(Lanes(left + i + 8 * c), l[c]);
      _mm256_storeu_si256(Lanes(right + i + 8 * c), r[c]);
    }
  }
}

// Processes 16 indices at a time: two chains hide the multiplications' latency.
template <class Network>
__attribute__((target("avx2"))) void EncryptAvx2(const Network& network,
                                                 uint32_t* left,
                                                 uint32_t* right,
                                                 uint64_t count) {
  if (network.left_mask <= kTableMask)
    return EncryptByTables(network, left, right, count);
  const __m256i left_mask =
      _mm256_set1_epi32(static_cast<int>(network.left_mask));
  const __m256i right_mask =
      _mm256_set1_epi32(static_cast<int>(network.right_mask));
  // The block's arrays are padded: lanes beyond `count` are computed and
  // unused.
  for (uint64_t i = 0; i < count; i += 16) {
    __m256i l0 = _mm256_loadu_si256(Lanes(left + i));
    __m256i l1 = _mm256_loadu_si256(Lanes(left + i + 8));
    __m256i r0 = _mm256_loadu_si256(Lanes(right + i));
    __m256i r1 = _mm256_loadu_si256(Lanes(right + i + 8));
    for (uint32_t round = 0; round < network.rounds; round += 2) {
      const uint32_t key = network.keys[round];
      const uint32_t next = network.keys[round + 1];
      l0 = _mm256_xor_si256(
          l0, _mm256_and_si256(RoundFunction8(r0, key), left_mask));
      l1 = _mm256_xor_si256(
          l1, _mm256_and_si256(RoundFunction8(r1, key), left_mask));
      r0 = _mm256_xor_si256(
          r0, _mm256_and_si256(RoundFunction8(l0, next), right_mask));
      r1 = _mm256_xor_si256(
          r1, _mm256_and_si256(RoundFunction8(l1, next), right_mask));
    }
    _mm256_storeu_si256(Lanes(left + i), l0);
    _mm256_storeu_si256(Lanes(left + i + 8), l1);
    _mm256_storeu_si256(Lanes(right + i), r0);
    _mm256_storeu_si256(Lanes(right + i + 8), r1);
  }
}

}  // namespace
#endif

Permutation::EncryptFunction Permutation::BestEncrypt() {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return &EncryptAvx2<Network>;
#endif
  return &EncryptScalar;
}

uint64_t Permutation::operator()(uint64_t i) const {
  uint32_t left = static_cast<uint32_t>(i >> right_bits_);
  uint32_t right = static_cast<uint32_t>(i) & network_.right_mask;
  uint64_t result;
  do {
    EncryptScalar(network_, &left, &right, 1);
    result = (uint64_t{left} << right_bits_) | right;
  } while (result >= n_);
  return result;
}

void Permutation::MapWith(EncryptFunction encrypt,
                          std::span<uint64_t> indices) const {
  uint32_t left[kBlock], right[kBlock];
  uint32_t slot[kBlock];  // position of each pending index in the block
  while (!indices.empty()) {
    const std::span<uint64_t> block =
        indices.first(std::min(kBlock, indices.size()));
    size_t pending = block.size();
    for (size_t j = 0; j < pending; ++j) {
      left[j] = static_cast<uint32_t>(block[j] >> right_bits_);
      right[j] = static_cast<uint32_t>(block[j]) & network_.right_mask;
      slot[j] = static_cast<uint32_t>(j);
    }
    for (size_t j = pending; j % kPadding != 0; ++j) left[j] = right[j] = 0;
    while (pending > 0) {
      encrypt(network_, left, right, pending);
      size_t kept = 0;
      for (size_t j = 0; j < pending; ++j) {
        const uint64_t result = (uint64_t{left[j]} << right_bits_) | right[j];
        const uint32_t at = slot[j];
        block[at] = result;
        left[kept] = left[j];
        right[kept] = right[j];
        slot[kept] = at;
        kept += result >= n_;
      }
      pending = kept;
    }
    indices = indices.subspan(block.size());
  }
}

void Permutation::MapInPlace(std::span<uint64_t> indices) const {
  if (indices.size() <= kFewIndices) {
    for (uint64_t& index : indices) index = (*this)(index);
    return;
  }
  static const EncryptFunction encrypt = BestEncrypt();
  MapWith(encrypt, indices);
}

void Permutation::Map(uint64_t first, std::span<uint64_t> out) const {
  std::iota(out.begin(), out.end(), first);
  MapInPlace(out);
}

}  // namespace leat
