// SPDX-License-Identifier: Apache-2.0
//
// Writes Megatron's .idx, also wrong ones: every number may be changed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/worker/source/loader_support.h"

namespace leat::worker {

struct MegatronIndex {
  std::string magic{"MMIDIDX\0\0", 9};
  uint64_t version = 1;
  uint8_t type = 8;
  std::vector<int32_t> lengths;
  std::vector<int64_t> positions, documents = {0};
  std::string modes;

  // Adds a document of sequences of these lengths, of elements of `size` bytes.
  MegatronIndex& Add(const std::vector<int32_t>& sequences, int64_t size = 2) {
    for (const int32_t length : sequences) {
      positions.push_back(
          positions.empty() ? 0 : positions.back() + lengths.back() * size);
      lengths.push_back(length);
    }
    documents.push_back(static_cast<int64_t>(lengths.size()));
    return *this;
  }
  std::string Bytes() const {
    return magic + Little(version) + Little(type) +
           Little(uint64_t{lengths.size()}) +
           Little(uint64_t{documents.size()}) + BytesOfValues(lengths) +
           BytesOfValues(positions) + BytesOfValues(documents) + modes;
  }
};

// Returns the tokens first, first + 1, … as a .bin has them.
template <class T>
std::string TokensFrom(int64_t first, size_t count) {
  std::vector<T> tokens;
  for (size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<T>(first + static_cast<int64_t>(i)));
  return BytesOfValues(tokens);
}

}  // namespace leat::worker
