// SPDX-License-Identifier: Apache-2.0
//
// Windows are what packing is computed in: runs of about 16,384 documents.
//
// A listing passes the lengths of all documents through a WindowCutter once and
// keeps a PackWindow for each window. From these alone PackedRows finds the
// window of any row; the pieces of the row follow from the lengths of that
// window (cut_window.h, fit_window.h). So any worker computes any row without
// the lengths of the whole dataset.
//
// The rule for windows is a part of the bytes of a training: a window ends
//
// * after kWindowDocuments documents if at least as many follow, or
// * kFit only: after kWindowPieces pieces (PiecesOf) if any document follows, or
// * after the last document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/packing/packing.h"

namespace leat {

inline constexpr uint64_t kWindowDocuments = 16'384;
inline constexpr uint64_t kWindowPieces = 65'536;

struct PackWindow {
  uint64_t documents = 0;
  uint64_t elements = 0;  // of all its documents
  uint64_t rows = 0;      // kFit: of its own; kCut: 0, since rows cross windows

  friend bool operator==(const PackWindow&, const PackWindow&) = default;
};

// Not thread-safe. Memory: the lengths of one window.
class WindowCutter {
 public:
  // REQUIRES: CheckPacking(packing) is ok.
  WindowCutter(const Packing& packing, uint64_t num_documents);

  // Takes the length of the next document, in elements. Returns whether it ends
  // a window: then window() and lengths() describe that window until the next
  // call. kInvalidArgument names the document: it is over kMaxDocumentElements,
  // or PiecesOf refuses it, or all documents were there before.
  absl::StatusOr<bool> Add(uint64_t elements);

  const PackWindow& window() const { return window_; }
  std::span<const uint64_t> lengths() const { return lengths_; }

 private:
  bool Ends() const;

  const Packing packing_;
  const uint64_t num_documents_;
  uint64_t taken_ = 0;
  uint64_t pieces_ = 0;  // of the window
  bool ended_ = false;
  PackWindow window_;
  std::vector<uint64_t> lengths_;
};

// Immutable; thread-safe; 24 bytes a window.
class PackedRows {
 public:
  // kInvalidArgument: the windows make no row, or sums are beyond what a
  // dataset may have; the windows came from disk or network.
  // REQUIRES: CheckPacking(packing) is ok.
  static absl::StatusOr<PackedRows> Create(const Packing& packing,
                                           std::span<const PackWindow> windows);

  // kCut: ⌊(elements - overlap) / (length - overlap)⌋. kFit: of all windows.
  uint64_t num_rows() const { return num_rows_; }

  struct Place {
    size_t window = 0;
    // kFit: the row's number in the window. kCut: how many elements of the
    // window precede the row; the row may go on in the windows that follow.
    uint64_t index = 0;
  };
  // REQUIRES: row < num_rows().
  Place Locate(uint64_t row) const;

  size_t num_windows() const { return first_documents_.size() - 1; }
  // The documents of window w are FirstDocument(w) to FirstDocument(w + 1).
  // REQUIRES: window <= num_windows().
  uint64_t FirstDocument(size_t window) const {
    return first_documents_[window];
  }

 private:
  PackedRows() = default;

  Packing packing_;
  uint64_t num_rows_ = 0;
  std::vector<uint64_t> first_documents_;  // of each window, and the end
  // kFit: the first row of each window, kCut: its first element; and the end.
  std::vector<uint64_t> starts_;
};

}  // namespace leat
