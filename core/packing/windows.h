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
#include <functional>
#include <span>
#include <utility>
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

// Not thread-safe. Memory: the lengths of two windows.
class WindowCutter {
 public:
  // Takes a window and the lengths of its documents; they are valid until it
  // returns.
  using Use = std::function<absl::Status(const PackWindow& window,
                                         std::span<const uint64_t> lengths)>;

  // REQUIRES: CheckPacking(packing) is ok.
  WindowCutter(const Packing& packing, Use use)
      : packing_(packing), use_(std::move(use)) {}

  // Takes the length of the next document, in elements. kInvalidArgument names
  // the document: it is over kMaxDocumentElements, or PiecesOf refuses it.
  // Others: those of `use`.
  absl::Status Add(uint64_t elements);
  // Cuts what is left. REQUIRES: called once, last.
  absl::Status Finish();

  uint64_t num_documents() const { return taken_; }

 private:
  // Returns how many documents the window certainly has; 0: more have to come.
  size_t CertainEnd() const;
  absl::Status Cut(size_t documents);
  // Finds the first document at which the window has kWindowPieces.
  void CountPieces(size_t from);

  const Packing packing_;
  const Use use_;
  uint64_t taken_ = 0;
  std::vector<uint64_t> lengths_;  // of documents that are in no window yet
  std::vector<uint32_t> counts_;   // kFit: of their pieces
  uint64_t pieces_ = 0;            // of all of them, or of the first `full_`
  size_t full_ = 0;  // the first documents with kWindowPieces; 0: too few
};

// Immutable; thread-safe; 24 bytes a window.
class PackedRows {
 public:
  // `first_element`: kCut: where row 0 begins. kInvalidArgument: the windows
  // make no row, or sums are beyond what a dataset may have; the windows came
  // from disk or network. REQUIRES: CheckPacking(packing) is ok.
  static absl::StatusOr<PackedRows> Create(const Packing& packing,
                                           std::span<const PackWindow> windows,
                                           uint64_t first_element = 0);

  // kCut: ⌊(elements - first_element - overlap) / (length - overlap)⌋. kFit: of
  // all windows.
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
  uint64_t first_element_ = 0;
  std::vector<uint64_t> first_documents_;  // of each window, and the end
  // kFit: the first row of each window, kCut: its first element; and the end.
  std::vector<uint64_t> starts_;
};

}  // namespace leat
