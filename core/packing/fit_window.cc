// SPDX-License-Identifier: Apache-2.0
#include "core/packing/fit_window.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/packing/open_rows.h"
#include "core/packing/windows.h"
#include "core/status.h"

namespace leat {
namespace {

// A window ends with the document that has its 65,536th piece.
constexpr uint64_t kMaxPieces = kWindowPieces + kMaxDocumentPieces;

// Returns the numbers of the pieces, the longest first; equal ones stay in
// their order. It is a radix sort by bytes, which is stable.
std::vector<uint32_t> LongestFirst(std::span<const uint32_t> sizes,
                                   uint64_t length) {
  std::vector<uint32_t> order(sizes.size()), sorted(sizes.size());
  std::iota(order.begin(), order.end(), 0u);
  for (unsigned shift = 0; shift < std::bit_width(length); shift += 8) {
    std::array<uint32_t, 257> starts{};
    const auto bucket = [&](uint32_t piece) {
      return 255 - ((sizes[piece] >> shift) & 255);
    };
    for (const uint32_t piece : order) ++starts[bucket(piece) + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    for (const uint32_t piece : order) sorted[starts[bucket(piece)]++] = piece;
    order.swap(sorted);
  }
  return order;
}

// Returns the row of each piece. Rows are numbered as they were opened.
std::vector<uint32_t> RowOfEach(const Packing& packing,
                                std::span<const uint32_t> sizes,
                                uint32_t* num_rows) {
  std::vector<uint32_t> rows(sizes.size());
  std::vector<uint32_t> counts;  // pieces of each row
  OpenRows open(packing.length);
  for (const uint32_t piece : LongestFirst(sizes, packing.length)) {
    const uint32_t size = sizes[piece];
    uint64_t room = open.LeastRoom(size);
    uint32_t row = 0;
    if (room == OpenRows::kNone) {
      row = static_cast<uint32_t>(counts.size());
      counts.push_back(0);
      room = packing.length;
    } else {
      row = open.Take(room);
    }
    rows[piece] = row;
    ++counts[row];
    const bool closed =
        packing.max_documents != 0 && counts[row] == packing.max_documents;
    if (room > size && !closed) open.Put(row, room - size);
  }
  *num_rows = static_cast<uint32_t>(counts.size());
  return rows;
}

}  // namespace

absl::StatusOr<FitWindow> FitWindow::Pack(const Packing& packing,
                                          std::span<const uint64_t> lengths) {
  FitWindow window;
  window.packing_ = packing;
  window.lengths_.assign(lengths.begin(), lengths.end());
  window.first_piece_.reserve(lengths.size());
  const uint64_t step = packing.length - packing.overlap;
  std::vector<uint32_t> sizes;
  for (size_t document = 0; document < lengths.size(); ++document) {
    const uint64_t elements = lengths[document];
    ASSIGN_OR_RETURN(const uint64_t pieces,
                     PiecesOf(packing, document, elements));
    if (pieces > kMaxPieces - sizes.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a window has over ", kMaxPieces,
                       " pieces of length=", packing.length));
    }
    window.first_piece_.push_back(static_cast<uint32_t>(sizes.size()));
    for (uint64_t piece = 0; piece < pieces; ++piece) {
      sizes.push_back(static_cast<uint32_t>(
          std::min(elements - piece * step, packing.length)));
    }
  }
  uint32_t num_rows = 0;
  std::vector<uint32_t> rows = RowOfEach(packing, sizes, &num_rows);

  // Rows are numbered anew, in the order of their first pieces; then the pieces
  // are sorted by row.
  std::vector<uint32_t> renumbered(num_rows, num_rows);
  window.row_ends_.assign(num_rows, 0);
  uint32_t next = 0;
  for (uint32_t& row : rows) {
    if (renumbered[row] == num_rows) renumbered[row] = next++;
    row = renumbered[row];
    ++window.row_ends_[row];
  }
  std::exclusive_scan(window.row_ends_.begin(), window.row_ends_.end(),
                      window.row_ends_.begin(), 0u);
  window.pieces_.resize(sizes.size());
  for (uint32_t piece = 0; piece < rows.size(); ++piece) {
    window.pieces_[window.row_ends_[rows[piece]]++] = piece;
  }
  return window;
}

void FitWindow::AppendPieces(uint64_t row, std::vector<Piece>* pieces) const {
  const uint64_t step = packing_.length - packing_.overlap;
  const uint32_t begin = row == 0 ? 0 : row_ends_[row - 1];
  for (uint32_t i = begin; i < row_ends_[row]; ++i) {
    const uint32_t piece = pieces_[i];
    const auto after =
        std::upper_bound(first_piece_.begin(), first_piece_.end(), piece);
    const size_t document =
        static_cast<size_t>(after - first_piece_.begin()) - 1;
    const uint64_t first = (piece - first_piece_[document]) * step;
    pieces->push_back({document, first,
                       std::min(lengths_[document] - first, packing_.length)});
  }
}

}  // namespace leat
