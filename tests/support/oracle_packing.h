// SPDX-License-Identifier: Apache-2.0
//
// The oracle's packed rows: plain loops over all documents, which it reads
// whole. It shares no code with core/packing but the numbers of a window.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/packing/pack_node.h"
#include "core/packing/windows.h"
#include "core/pipeline/operators.h"
#include "core/status.h"
#include "worker/source/source.h"

namespace leat::worker {

class PackedByHand final : public FormatSource {
 public:
  static absl::StatusOr<std::unique_ptr<Source>> Of(
      const Source& documents, const PackNode& pack,
      std::span<const ValueType> types) {
    auto packed = std::make_unique<PackedByHand>();
    std::vector<StoredSample> stored;
    std::vector<uint64_t> lengths;
    for (uint64_t i = 0; i < documents.num_samples(); ++i) {
      ASSIGN_OR_RETURN(StoredSample document, documents.Read(i));
      lengths.push_back(document.fields[pack.outputs[0]].bytes.size() /
                        ElementBytes(types[pack.outputs[0]]));
      stored.push_back(std::move(document));
    }
    const Rows rows = pack.packing.how == PackHow::kCut
                          ? Cut(pack.packing, lengths)
                          : Fit(pack.packing, lengths);
    for (const std::vector<Piece>& row : rows)
      packed->rows_.push_back(RowOf(row, stored, pack, types));
    packed->fingerprint_ = documents.fingerprint();
    return packed;
  }

  uint64_t num_samples() const override { return rows_.size(); }
  uint64_t RecordOf(uint64_t row) const override { return row; }
  absl::StatusOr<StoredSample> Read(uint64_t row) const override {
    StoredSample sample;
    for (const auto& bytes : rows_[row])
      sample.fields.push_back({std::as_bytes(std::span(bytes)), {}});
    return sample;
  }
  const Digest& fingerprint() const override { return fingerprint_; }
  std::string Describe(uint64_t row) const override {
    return fmt::format("row {}", row);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t) const override {
    return Unimplemented("not in the oracle");
  }

 private:
  using Rows = std::vector<std::vector<Piece>>;
  using Bytes = std::vector<char>;

  static size_t ElementBytes(const ValueType& type) {
    size_t bytes = SizeOf(type.dtype);
    for (size_t axis = 1; axis < type.shape.size(); ++axis)
      bytes *= static_cast<size_t>(type.shape[axis]);
    return bytes;
  }

  static Rows Cut(const Packing& packing,
                  const std::vector<uint64_t>& lengths) {
    std::vector<std::pair<uint64_t, uint64_t>> elements;  // document, index
    for (uint64_t document = 0; document < lengths.size(); ++document)
      for (uint64_t i = 0; i < lengths[document]; ++i)
        elements.emplace_back(document, i);
    Rows rows;
    for (uint64_t begin = 0; begin + packing.length <= elements.size();
         begin += packing.length - packing.overlap) {
      std::vector<Piece>& row = rows.emplace_back();
      for (uint64_t i = begin; i < begin + packing.length; ++i) {
        const auto& [document, index] = elements[i];
        if (row.empty() || row.back().document != document)
          row.push_back({document, index, 0});
        ++row.back().size;
      }
    }
    return rows;
  }

  struct OpenRow {
    uint64_t room = 0, put = 0;  // put: when it got this room
    std::vector<Piece> pieces;
  };

  // Best fit, of one window. REQUIRES: the documents are one window.
  static Rows Fit(const Packing& packing,
                  const std::vector<uint64_t>& lengths) {
    std::vector<Piece> pieces;
    for (uint64_t document = 0; document < lengths.size(); ++document) {
      const uint64_t size = lengths[document];
      if (size > packing.length && packing.longer == PackLonger::kDrop)
        continue;
      for (uint64_t begin = 0; begin < size;
           begin += packing.length - packing.overlap) {
        pieces.push_back(
            {document, begin, std::min(packing.length, size - begin)});
        if (begin + packing.length >= size) break;
      }
    }
    std::ranges::stable_sort(pieces, std::greater<>{}, &Piece::size);
    std::vector<OpenRow> rows;
    uint64_t now = 0;
    for (const Piece& piece : pieces) {
      OpenRow* best = nullptr;
      for (OpenRow& row : rows) {
        const bool full = packing.max_documents != 0 &&
                          row.pieces.size() == packing.max_documents;
        if (full || row.room < piece.size) continue;
        if (best == nullptr || row.room < best->room ||
            (row.room == best->room && row.put > best->put))
          best = &row;
      }
      if (best == nullptr)
        best = &rows.emplace_back(OpenRow{.room = packing.length});
      best->room -= piece.size;
      best->put = ++now;
      best->pieces.push_back(piece);
    }
    Rows done;
    const auto order = [](const Piece& piece) {
      return std::pair(piece.document, piece.begin);
    };
    for (OpenRow& row : rows) {
      std::ranges::sort(row.pieces, {}, order);
      done.push_back(std::move(row.pieces));
    }
    std::ranges::sort(done, {},
                      [&](const auto& row) { return order(row.front()); });
    return done;
  }

  static std::vector<Bytes> RowOf(const std::vector<Piece>& pieces,
                                  const std::vector<StoredSample>& documents,
                                  const PackNode& pack,
                                  std::span<const ValueType> types) {
    std::vector<Bytes> fields;
    for (size_t i = 0; i < pack.outputs.size(); ++i) {
      const ValueType& type = types[pack.outputs[i]];
      const size_t element = ElementBytes(type);
      const std::vector<std::byte> fill = pack.FillBytes(i, type.dtype);
      Bytes& bytes = fields.emplace_back();
      for (const Piece& piece : pieces) {
        const auto* from = reinterpret_cast<const char*>(
            documents[piece.document].fields[pack.outputs[i]].bytes.data());
        bytes.insert(bytes.end(), from + piece.begin * element,
                     from + (piece.begin + piece.size) * element);
      }
      while (bytes.size() < pack.packing.length * element)
        for (const std::byte byte : fill)
          bytes.push_back(static_cast<char>(byte));
    }
    std::vector<int32_t> segments, positions;
    for (size_t i = 0; i < pieces.size(); ++i)
      for (uint64_t at = 0; at < pieces[i].size; ++at) {
        segments.push_back(static_cast<int32_t>(i + 1));
        positions.push_back(static_cast<int32_t>(at));
      }
    for (std::vector<int32_t>* numbers : {&segments, &positions}) {
      numbers->resize(pack.packing.length);
      const auto* bytes = reinterpret_cast<const char*>(numbers->data());
      fields.emplace_back(bytes, bytes + 4 * numbers->size());
    }
    return fields;
  }

  std::vector<std::vector<Bytes>> rows_;
  Digest fingerprint_{};
};

}  // namespace leat::worker
