// SPDX-License-Identifier: Apache-2.0
//
// Draws small labelled pictures: digits like MNIST's, and coloured tiles like
// CIFAR-10's, in the file formats of those sets. A small network learns both
// within a few dozen steps, though not at once. The same arguments give the
// same bytes.
#pragma once

#include <cstdint>
#include <string>

namespace leat::testing {

// The two files of a part of MNIST, not compressed: images of 28 × 28 bytes,
// and their labels, 0 to 9 in any order.
struct IdxPair {
  std::string images;
  std::string labels;
};
IdxPair DrawDigits(uint32_t count, uint32_t seed);

// Records of CIFAR-10's binary files: a label and 3 planes of 32 × 32 bytes.
std::string DrawTiles(uint32_t count, uint32_t seed);

}  // namespace leat::testing
