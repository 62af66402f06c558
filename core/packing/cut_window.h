// SPDX-License-Identifier: Apache-2.0
//
// CutWindow finds the pieces of a row whose documents follow one another
// (PackHow::kCut), in one window of them.
//
// Immutable; thread-safe; 8 bytes a document.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/packing/packing.h"

namespace leat {

class CutWindow {
 public:
  // `lengths`: of the window's documents, in elements. REQUIRES: their sum is
  // below 2^60.
  explicit CutWindow(std::span<const uint64_t> lengths);

  // Appends the pieces of up to `wanted` elements from element `first` of the
  // window on. Documents are counted from the window's first. Returns how many
  // elements they have: fewer than wanted if the window ends, and then the row
  // goes on with element 0 of the next window.
  uint64_t AppendPieces(uint64_t first, uint64_t wanted,
                        std::vector<Piece>* pieces) const;

  uint64_t num_elements() const { return ends_.empty() ? 0 : ends_.back(); }

 private:
  std::vector<uint64_t> ends_;  // elements up to the end of each document
};

}  // namespace leat
