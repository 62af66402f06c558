// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/packed_documents.h"

#include <optional>
#include <utility>

#include "core/packing/cut_window.h"
#include "core/packing/fit_window.h"
#include "core/status.h"

namespace leat::worker {
namespace {

// Bounds of opened windows; each takes about 300 KB.
constexpr uint64_t kWindowBytes = 64 << 20;
constexpr uint64_t kWindowBytesOfOneOfMany = 8 << 20;
constexpr size_t kMaxWindows = 4096;

}  // namespace

struct PackedDocuments::Window {
  std::vector<uint64_t> lengths;
  std::optional<CutWindow> cut;  // of one way of packing, and
  std::optional<FitWindow> fit;  // of the other

  uint64_t bytes() const {
    const uint64_t rows = fit ? fit->num_rows() : 0;
    return 24 * lengths.size() + 16 * rows;
  }
};

PackedDocuments::PackedDocuments(std::shared_ptr<const Source> documents,
                                 PackNode pack,
                                 std::span<const ValueType> types,
                                 PackedBlock block, const Digest& fingerprint,
                                 const SourceLimits& limits)
    : FormatSource(fingerprint),
      documents_(std::move(documents)),
      pack_(std::move(pack)),
      block_(std::move(block)),
      assembler_(pack_, types),
      windows_(limits.one_of_many ? kWindowBytesOfOneOfMany : kWindowBytes,
               kMaxWindows, limits.unpacked) {}

absl::StatusOr<std::shared_ptr<const PackedDocuments::Window>>
PackedDocuments::Open(size_t window) const {
  return windows_.Get(
      window, [&]() -> absl::StatusOr<std::shared_ptr<const Window>> {
        auto opened = std::make_shared<Window>();
        opened->lengths = block_.LengthsOf(window);
        if (pack_.packing.how == PackHow::kCut) {
          opened->cut.emplace(opened->lengths);
        } else {
          ASSIGN_OR_RETURN(opened->fit,
                           FitWindow::Pack(pack_.packing, opened->lengths));
        }
        return opened;
      });
}

absl::StatusOr<std::vector<PackedDocuments::Listed>>
PackedDocuments::ListedPiecesOf(uint64_t row) const {
  const PackedRows& rows = block_.rows();
  const bool cut = pack_.packing.how == PackHow::kCut;
  std::vector<Listed> listed;
  std::vector<Piece> pieces;
  auto [window, index] = rows.Locate(row);
  for (uint64_t left = pack_.packing.length; left > 0; ++window, index = 0) {
    if (window == rows.num_windows())
      return DataLoss("row {} of the packing ends behind the last document",
                      row);
    ASSIGN_OR_RETURN(const std::shared_ptr<const Window> opened, Open(window));
    pieces.clear();
    if (cut) {
      left -= opened->cut->AppendPieces(index, left, &pieces);
    } else {
      if (index >= opened->fit->num_rows())
        return DataLoss("window {} of the packing has {} rows, want over {}",
                        window, opened->fit->num_rows(), index);
      opened->fit->AppendPieces(index, &pieces);
      left = 0;
    }
    for (Piece piece : pieces) {
      const uint64_t elements = opened->lengths[piece.document];
      piece.document =
          block_.SampleOf(rows.FirstDocument(window) + piece.document);
      listed.push_back({piece, elements});
    }
  }
  return listed;
}

absl::StatusOr<std::vector<Piece>> PackedDocuments::PiecesOf(
    uint64_t row) const {
  ASSIGN_OR_RETURN(const std::vector<Listed> listed, ListedPiecesOf(row));
  std::vector<Piece> pieces;
  pieces.reserve(listed.size());
  for (const Listed& each : listed) pieces.push_back(each.piece);
  return pieces;
}

absl::StatusOr<StoredSample> PackedDocuments::Read(uint64_t row) const {
  return std::move(ReadMany({&row, 1}).front());
}

std::vector<absl::StatusOr<StoredSample>> PackedDocuments::ReadMany(
    std::span<const uint64_t> rows) const {
  std::vector<absl::StatusOr<std::vector<Listed>>> pieces;
  std::vector<RecordPart> wanted;
  for (const uint64_t row : rows) {
    pieces.push_back(ListedPiecesOf(row));
    if (!pieces.back().ok()) continue;
    for (const Listed& listed : *pieces.back())
      wanted.push_back(
          {listed.piece.document, listed.piece.begin, listed.piece.size});
  }
  const std::vector<absl::StatusOr<StoredPart>> documents =
      documents_->ReadParts(wanted);
  std::vector<absl::StatusOr<StoredSample>> stored;
  size_t next = 0;  // document
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!pieces[i].ok()) {
      stored.push_back(pieces[i].status());
      continue;
    }
    RowAssembler::Row row(assembler_);
    absl::Status status;
    for (const Listed& listed : *pieces[i]) {
      const absl::StatusOr<StoredPart>& document = documents[next++];
      if (!status.ok()) continue;
      status = document.ok() ? row.Add(listed.piece, *document, listed.elements)
                             : document.status();
    }
    if (status.ok())
      stored.push_back(row.Finish());
    else
      stored.push_back(
          Annotate(status, fmt::format("row {} of the packing", rows[i])));
  }
  return stored;
}

std::string PackedDocuments::Describe(uint64_t row) const {
  const absl::StatusOr<std::vector<Piece>> pieces = PiecesOf(row);
  if (!pieces.ok() || pieces->empty())
    return fmt::format("row {} of the packing", row);
  std::string text =
      fmt::format("row {} of the packing: {}", row,
                  documents_->Describe(pieces->front().document));
  if (pieces->size() > 1)
    text += fmt::format(" and {} more", pieces->size() - 1);
  return text;
}

absl::StatusOr<RecordPlace> PackedDocuments::Locate(uint64_t row) const {
  ASSIGN_OR_RETURN(const std::vector<Piece> pieces, PiecesOf(row));
  return documents_->Locate(pieces.front().document);
}

absl::StatusOr<std::optional<RowDocuments>> PackedDocuments::DocumentsOf(
    uint64_t row, uint64_t first, uint64_t most) const {
  ASSIGN_OR_RETURN(const std::vector<Listed> listed, ListedPiecesOf(row));
  RowDocuments documents{.count = listed.size()};
  uint64_t row_begin = 0;
  for (size_t i = 0; i < listed.size(); ++i) {
    const auto& [piece, elements] = listed[i];
    if (i >= first && documents.listed.size() < most) {
      ASSIGN_OR_RETURN(RecordPlace place, documents_->Locate(piece.document));
      documents.listed.push_back({.sample = piece.document,
                                  .begin = piece.begin,
                                  .elements = piece.size,
                                  .row_begin = row_begin,
                                  .document_elements = elements,
                                  .place = std::move(place)});
    }
    row_begin += piece.size;
  }
  return documents;
}

}  // namespace leat::worker
