// SPDX-License-Identifier: Apache-2.0
//
// Philox4x32-10: a counter-based generator (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011).
//
// Random operators draw from a generator keyed by (seed, epoch, sample,
// operator), so that a draw does not depend on placement, thread or order of
// work.
#pragma once

#include <array>
#include <cstdint>

namespace leat {

// Computes one block of 4 × 32 bits: the function of the paper.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                   std::array<uint32_t, 2> key);

// A stream of draws for one operator on one sample. Thread-compatible; cheap to
// make.
class SampleRng {
 public:
  // `op`: the operator's node in the normalised graph.
  SampleRng(uint64_t seed, uint64_t epoch, uint64_t sample, uint32_t op);

  uint32_t NextU32();
  // Returns a number in [0, 1) with 24 bits: exact in float.
  float NextFloat() { return static_cast<float>(NextU32() >> 8) * 0x1.0p-24f; }
  // Returns a number in [0, 1) with 53 bits.
  double NextDouble();

  // The state from which a device draws the same words: word i is word i % 4 of
  // the block whose first counter word is i / 4 higher. REQUIRES: no draw
  // before.
  struct Origin {
    std::array<uint32_t, 4> counter;
    std::array<uint32_t, 2> key;
  };
  Origin origin() const { return {counter_, key_}; }

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace leat
