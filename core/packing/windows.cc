// SPDX-License-Identifier: Apache-2.0
#include "core/packing/windows.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/packing/fit_window.h"
#include "core/status.h"

namespace leat {
namespace {

// No sum of windows overflows, and no sample has a larger number.
constexpr uint64_t kMaxSum = uint64_t{1} << 60;
constexpr uint64_t kMaxRows = uint64_t{1} << 48;

}  // namespace

absl::Status WindowCutter::Add(uint64_t elements) {
  if (elements > kMaxDocumentElements) {
    return absl::InvalidArgumentError(
        absl::StrCat("document ", taken_, " has ", elements,
                     " elements: want at most ", kMaxDocumentElements));
  }
  if (packing_.how == PackHow::kFit) {
    uint64_t pieces = elements == 0 ? 0 : 1;  // most documents fit into a row
    if (elements > packing_.length) {
      ASSIGN_OR_RETURN(pieces, PiecesOf(packing_, taken_, elements));
    }
    counts_.push_back(static_cast<uint32_t>(pieces));
  }
  ++taken_;
  lengths_.push_back(elements);
  CountPieces(lengths_.size() - 1);
  while (const size_t end = CertainEnd()) RETURN_IF_ERROR(Cut(end));
  return absl::OkStatus();
}

size_t WindowCutter::CertainEnd() const {
  const bool follows = full_ != 0 && lengths_.size() > full_;
  if (follows && full_ <= kWindowDocuments) return full_;
  return lengths_.size() >= 2 * kWindowDocuments ? kWindowDocuments : 0;
}

void WindowCutter::CountPieces(size_t from) {
  for (size_t i = from; i < counts_.size() && full_ == 0; ++i) {
    pieces_ += counts_[i];
    if (pieces_ >= kWindowPieces) full_ = i + 1;
  }
}

absl::Status WindowCutter::Cut(size_t documents) {
  const std::span<const uint64_t> lengths(lengths_.data(), documents);
  PackWindow window{.documents = documents};
  for (const uint64_t length : lengths) window.elements += length;
  if (packing_.how == PackHow::kFit) {
    ASSIGN_OR_RETURN(const FitWindow packed,
                     FitWindow::Pack(packing_, lengths));
    window.rows = packed.num_rows();
  }
  RETURN_IF_ERROR(use_(window, lengths));
  lengths_.erase(lengths_.begin(),
                 lengths_.begin() + static_cast<ptrdiff_t>(documents));
  if (packing_.how == PackHow::kFit)
    counts_.erase(counts_.begin(),
                  counts_.begin() + static_cast<ptrdiff_t>(documents));
  pieces_ = full_ = 0;
  CountPieces(0);
  return absl::OkStatus();
}

absl::Status WindowCutter::Finish() {
  while (!lengths_.empty())
    RETURN_IF_ERROR(Cut(full_ == 0 ? lengths_.size() : full_));
  return absl::OkStatus();
}

absl::StatusOr<PackedRows> PackedRows::Create(
    const Packing& packing, std::span<const PackWindow> windows,
    uint64_t first_element) {
  PackedRows rows;
  rows.packing_ = packing;
  rows.first_element_ = first_element;
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
  const uint64_t left = elements < first_element ? 0 : elements - first_element;
  const uint64_t cut =
      left < packing.length ? 0 : (left - packing.overlap) / step;
  rows.num_rows_ = fit ? fitted : cut;
  if (rows.num_rows_ == 0) {
    std::string wanted = absl::StrCat("at least length=", packing.length);
    if (fit) wanted = "one that is not empty";
    if (packing.longer == PackLonger::kDrop)
      wanted = absl::StrCat("one of 1 to length=", packing.length,
                            ", since longer ones are dropped");
    return absl::InvalidArgumentError(
        absl::StrCat("pack makes no row of ", documents, " documents with ",
                     elements, " elements together: want ", wanted));
  }
  if (rows.num_rows_ > kMaxRows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pack makes ", rows.num_rows_, " rows: want at most ", kMaxRows));
  }
  return rows;
}

PackedRows::Place PackedRows::Locate(uint64_t row) const {
  const bool fit = packing_.how == PackHow::kFit;
  const uint64_t start =
      fit ? row : first_element_ + row * (packing_.length - packing_.overlap);
  // The last window that begins at or before `start`: empty windows, which
  // begin where the next does, are passed over.
  const auto after =
      std::upper_bound(starts_.begin(), starts_.end() - 1, start);
  const size_t window = static_cast<size_t>(after - starts_.begin()) - 1;
  return {window, start - starts_[window]};
}

}  // namespace leat
