// SPDX-License-Identifier: Apache-2.0
#include "core/packing/windows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/packing/fit_window.h"
#include "core/status.h"

namespace leat {
namespace {

// No sum of windows overflows, and no sample has a larger number.
constexpr uint64_t kMaxSum = uint64_t{1} << 60;
constexpr uint64_t kMaxRows = uint64_t{1} << 48;

}  // namespace

WindowCutter::WindowCutter(const Packing& packing, uint64_t num_documents)
    : packing_(packing), num_documents_(num_documents) {}

absl::StatusOr<bool> WindowCutter::Add(uint64_t elements) {
  if (taken_ == num_documents_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a document follows the last of ", num_documents_));
  }
  if (elements > kMaxDocumentElements) {
    return absl::InvalidArgumentError(
        absl::StrCat("document ", taken_, " has ", elements,
                     " elements: want at most ", kMaxDocumentElements));
  }
  if (ended_) {
    window_ = {};
    lengths_.clear();
    pieces_ = 0;
    ended_ = false;
  }
  if (packing_.how == PackHow::kFit) {
    ASSIGN_OR_RETURN(const uint64_t pieces,
                     PiecesOf(packing_, taken_, elements));
    pieces_ += pieces;
  }
  ++taken_;
  lengths_.push_back(elements);
  ++window_.documents;
  window_.elements += elements;
  ended_ = Ends();
  if (ended_ && packing_.how == PackHow::kFit) {
    ASSIGN_OR_RETURN(const FitWindow packed,
                     FitWindow::Pack(packing_, lengths_));
    window_.rows = packed.num_rows();
  }
  return ended_;
}

bool WindowCutter::Ends() const {
  const uint64_t left = num_documents_ - taken_;
  return left == 0 || pieces_ >= kWindowPieces ||
         (window_.documents >= kWindowDocuments && left >= kWindowDocuments);
}

absl::StatusOr<PackedRows> PackedRows::Create(
    const Packing& packing, std::span<const PackWindow> windows) {
  PackedRows rows;
  rows.packing_ = packing;
  rows.first_documents_.reserve(windows.size() + 1);
  rows.starts_.reserve(windows.size() + 1);
  uint64_t documents = 0, elements = 0, fitted = 0;
  const bool fit = packing.how == PackHow::kFit;
  rows.first_documents_.push_back(0);
  rows.starts_.push_back(0);
  for (const PackWindow& window : windows) {
    if (window.documents > kMaxRows - documents ||
        window.elements > kMaxSum - elements ||
        window.rows > kMaxRows - fitted) {
      return absl::InvalidArgumentError(absl::StrCat(
          "window ", rows.num_windows(), " has ", window.documents,
          " documents, ", window.elements, " elements and ", window.rows,
          " rows: want less, so that sums stay below 2^48 documents, 2^60 "
          "elements and 2^48 rows"));
    }
    documents += window.documents;
    elements += window.elements;
    fitted += window.rows;
    rows.first_documents_.push_back(documents);
    rows.starts_.push_back(fit ? fitted : elements);
  }
  const uint64_t step = packing.length - packing.overlap;
  const uint64_t cut =
      elements < packing.length ? 0 : (elements - packing.overlap) / step;
  rows.num_rows_ = fit ? fitted : cut;
  if (rows.num_rows_ == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("pack makes no row of ", documents, " documents with ",
                     elements, " elements together: want ",
                     fit ? "one that is not empty and not dropped"
                         : absl::StrCat("at least length=", packing.length)));
  }
  if (rows.num_rows_ > kMaxRows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pack makes ", rows.num_rows_, " rows: want at most ", kMaxRows));
  }
  return rows;
}

PackedRows::Place PackedRows::Locate(uint64_t row) const {
  const bool fit = packing_.how == PackHow::kFit;
  const uint64_t start = fit ? row : row * (packing_.length - packing_.overlap);
  // The last window that begins at or before `start`: empty windows, which
  // begin where the next does, are passed over.
  const auto after =
      std::upper_bound(starts_.begin(), starts_.end() - 1, start);
  const size_t window = static_cast<size_t>(after - starts_.begin()) - 1;
  return {window, start - starts_[window]};
}

}  // namespace leat
