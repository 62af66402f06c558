// SPDX-License-Identifier: Apache-2.0
//
// FitWindow packs the documents of one window into rows (PackHow::kFit).
//
// Documents become pieces (PiecesOf in packing.h), numbered in the order of the
// data. Best fit decreasing places them, the longest first, of equal ones the
// lower number first: a piece goes into the row with the least room that has
// enough, of equal ones into the one that got that room last, and otherwise
// into a new row. A row with max_documents pieces takes no more.
//
// In a row the pieces stand in the order of the data, and rows stand in the
// order of their first pieces. For example pieces of 5, 3, 2 and 4 elements in
// rows of 7, a to d: 5 opens a row, 4 another one, 3 fits exactly beside 4, 2
// beside 5. The rows are "aaaaacc" and "bbbdddd".
//
// Immutable; thread-safe; 12 bytes a document, 4 a piece and 4 a row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/packing/packing.h"

namespace leat {

class FitWindow {
 public:
  // `lengths`: of the window's documents, in elements. Takes some tens of
  // nanoseconds for each piece, and scratch memory of 4 bytes for each element
  // of a row. kInvalidArgument: as PiecesOf, or more pieces than a window may
  // have. REQUIRES: CheckPacking is ok.
  static absl::StatusOr<FitWindow> Pack(const Packing& packing,
                                        std::span<const uint64_t> lengths);

  uint64_t num_rows() const { return row_ends_.size(); }

  // Appends the pieces of a row. Documents are counted from the window's
  // first. REQUIRES: row < num_rows().
  void AppendPieces(uint64_t row, std::vector<Piece>* pieces) const;

 private:
  FitWindow() = default;

  Packing packing_;
  std::vector<uint64_t> lengths_;      // of documents
  std::vector<uint32_t> first_piece_;  // of each document
  std::vector<uint32_t> pieces_;       // row by row
  std::vector<uint32_t> row_ends_;     // in pieces_
};

}  // namespace leat
