// SPDX-License-Identifier: Apache-2.0
//
// Permutation: a keyed bijection of [0, n) in O(1) memory.
//
// A generalised Feistel network over bit_width(n-1) bits with cycle walking
// (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002); ≥ 8
// rounds, because 4 are measurably not random. Immutable; thread-safe. Golden:
// tests/golden/permutation.txt.
#pragma once

#include <cstdint>
#include <span>

namespace leat {

class Permutation {
 public:
  // The identity on nothing.
  Permutation() = default;
  // REQUIRES: 0 < n ≤ 2^48.
  Permutation(uint64_t n, uint64_t key);

  uint64_t size() const { return n_; }
  // REQUIRES: i < size().
  uint64_t operator()(uint64_t i) const;
  // out[j] = (*this)(first + j). ≥ 20 M indices/s a core. REQUIRES: first +
  // out.size() ≤ size().
  void Map(uint64_t first, std::span<uint64_t> out) const;

 private:
  static constexpr int kRounds = 8;
  uint64_t n_ = 0;
  // (layout is the implementer's: round keys, halves' widths, masks)
  uint32_t round_keys_[kRounds] = {};
  uint32_t left_bits_ = 0, right_bits_ = 0;
};

// A 64-bit hash of its arguments, well mixed: keys of permutations and of
// generators.
uint64_t MixKey(uint64_t seed, uint64_t epoch, uint64_t salt);

}  // namespace leat
