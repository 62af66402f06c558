// SPDX-License-Identifier: Apache-2.0
//
// PermuteEach maps indices of many permutations (permutation.h) together.
//
// A permutation computes many indices at a time, all with the same keys. If
// each permutation of a list has only a few indices, this computes indices of
// several at a time, each with keys of its own. A pure function; any thread may
// call it.
#pragma once

#include <cstdint>
#include <span>

namespace leat {

// Indices that are to be replaced by those to which Permutation(n, key) maps
// them.
struct PermutedIndices {
  uint64_t n = 0;
  uint64_t key = 0;
  std::span<uint64_t> indices;
};

// Does Permutation(n, key).MapInPlace(indices) for each of the list. It is
// faster than that for up to about 16 indices each. REQUIRES: as there.
void PermuteEach(std::span<const PermutedIndices> list);

}  // namespace leat
