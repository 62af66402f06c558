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
#include <vector>

namespace leat {

// Indices that are to be replaced by `begin` + what Permutation(n, key) maps
// them to.
struct PermutedIndices {
  uint64_t n = 0;
  uint64_t key = 0;
  std::span<uint64_t> indices;
  uint64_t begin = 0;
};

// Does Permutation(n, key).MapInPlace(indices) for each of the list, and adds
// `begin`. It is faster than that for up to about 16 indices each. REQUIRES: as
// there.
void PermuteEach(std::span<const PermutedIndices> list);

// The implementations for this machine; PermuteEach calls the last of them.
using PermuteFunction = void (*)(std::span<const PermutedIndices> list);
std::vector<PermuteFunction> PermuteFunctions();

}  // namespace leat
