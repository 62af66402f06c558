// SPDX-License-Identifier: Apache-2.0
//
// Permutation is a keyed bijection of [0, n) in O(1) memory.
//
// It is a generalised Feistel network over bit_width(n-1) bits with cycle
// walking (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
// It has 12 rounds, and 24 for up to 65,536 indices. Statistics distinguish 2
// rounds from a random permutation at millions of indices, and 16 rounds at
// seven indices; the other rounds are margin. Immutable; thread-safe. The
// golden file is tests/golden/permutation.txt.
#pragma once

#include <cstdint>
#include <span>

namespace leat {

class Permutation {
 public:
  // The permutation of the empty domain.
  Permutation() = default;
  // REQUIRES: 0 < n ≤ 2^48.
  Permutation(uint64_t n, uint64_t key);

  uint64_t size() const { return n_; }
  // REQUIRES: i < size().
  uint64_t operator()(uint64_t i) const;
  // Sets out[j] = (*this)(first + j). At least 20 M indices/s per core.
  // REQUIRES: first + out.size() ≤ size().
  void Map(uint64_t first, std::span<uint64_t> out) const;
  // Sets indices[j] = (*this)(indices[j]), at the same speed. REQUIRES: each <
  // size().
  void MapInPlace(std::span<uint64_t> indices) const;

 private:
  friend class PermutationTest;  // compares SIMD with scalar code

  static constexpr uint32_t kMaxRounds = 24;
  // One pass through the network, over the whole domain of bit_width(n-1) bits.
  struct Network {
    uint32_t keys[kMaxRounds] = {};
    uint32_t rounds = 0;  // even
    uint32_t left_mask = 0, right_mask = 0;
  };
  using EncryptFunction = void (*)(const Network&, uint32_t* left,
                                   uint32_t* right, uint64_t count);
  static void EncryptScalar(const Network& network, uint32_t* left,
                            uint32_t* right, uint64_t count);
  // Returns the fastest implementation for this machine; all give the same
  // bits.
  static EncryptFunction BestEncrypt();
  void MapWith(EncryptFunction encrypt, std::span<uint64_t> indices) const;

  uint64_t n_ = 0;
  uint32_t right_bits_ = 0;
  Network network_;
};

// Returns a 64-bit hash of its arguments, well mixed: a key for permutations
// and generators.
uint64_t MixKey(uint64_t seed, uint64_t epoch, uint64_t salt);
// The same in two steps, for many epochs: MixKey(seed, epoch, salt) =
// MixEpoch(MixSeed(seed, salt), epoch).
uint64_t MixSeed(uint64_t seed, uint64_t salt);
uint64_t MixEpoch(uint64_t mixed, uint64_t epoch);

}  // namespace leat
