// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/packed_block.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "core/status.h"
#include "worker/source/varint.h"

namespace leat::worker {
namespace {

// Takes the documents' numbers per window from the block.
absl::StatusOr<std::vector<PackWindow>> WindowsOf(
    const Packing& packing, const stored::v1::PackedBlock& block) {
  std::vector<PackWindow> windows;
  if (packing.how == PackHow::kCut) {
    for (uint64_t left = block.documents(); left > 0;) {
      const uint64_t some = std::min(left, kWindowDocuments);
      windows.push_back({.documents = some});
      left -= some;
    }
    return windows;
  }
  if (block.window_documents_size() != block.window_rows_size())
    return DataLoss("the index has {} windows with documents, {} with rows",
                    block.window_documents_size(), block.window_rows_size());
  uint64_t documents = 0;
  for (int i = 0; i < block.window_documents_size(); ++i) {
    windows.push_back(
        {.documents = block.window_documents(i), .rows = block.window_rows(i)});
    if (windows.back().documents > block.documents() - documents)
      return DataLoss("the windows of the index have over {} documents",
                      block.documents());
    documents += windows.back().documents;
  }
  if (documents == block.documents()) return windows;
  return DataLoss("the windows of the index have {} documents, want {}",
                  documents, block.documents());
}

}  // namespace

absl::StatusOr<PackedBlock> PackedBlock::Open(const Packing& packing,
                                              stored::v1::PackedBlock block,
                                              uint64_t samples) {
  // A document has at least one byte, so a block that lies takes no memory.
  const bool one_by_one = block.gaps().empty();
  if (block.documents() > block.lengths().size() ||
      (one_by_one && (block.first_document() > samples ||
                      block.documents() > samples - block.first_document())))
    return DataLoss(
        "the index has {} documents from {} on in {} bytes, of a dataset of {}",
        block.documents(), block.first_document(), block.lengths().size(),
        samples);
  std::optional<ChosenSamples> chosen;
  if (!one_by_one) {
    ASSIGN_OR_RETURN(chosen,
                     ChosenSamples::Parse(std::move(*block.mutable_gaps()),
                                          block.documents(), samples));
  }
  ASSIGN_OR_RETURN(std::vector<PackWindow> windows, WindowsOf(packing, block));
  std::string lengths = std::move(*block.mutable_lengths());
  std::string_view rest = lengths;
  std::vector<size_t> begins;
  for (PackWindow& window : windows) {
    begins.push_back(lengths.size() - rest.size());
    for (uint64_t i = 0; i < window.documents; ++i) {
      uint64_t elements = 0;
      if (!TakeVarint(&rest, &elements) || elements > kMaxDocumentElements)
        return DataLoss("the index has no length of a document at byte {}",
                        lengths.size() - rest.size());
      window.elements += elements;
    }
  }
  if (!rest.empty())
    return DataLoss("the index has {} bytes behind its lengths", rest.size());
  absl::StatusOr<PackedRows> rows =
      PackedRows::Create(packing, windows, block.first_element());
  if (!rows.ok()) return DataLoss("the index: {}", Message(rows.status()));
  if (rows->num_rows() != block.rows())
    return DataLoss("the index has {} rows, and says {}", rows->num_rows(),
                    block.rows());
  return PackedBlock(*std::move(rows), block.first_document(),
                     std::move(chosen), std::move(lengths), std::move(begins));
}

std::vector<uint64_t> PackedBlock::LengthsOf(size_t window) const {
  std::vector<uint64_t> lengths(rows_.FirstDocument(window + 1) -
                                rows_.FirstDocument(window));
  std::string_view rest = lengths_;
  rest.remove_prefix(window_begins_[window]);
  for (uint64_t& length : lengths) TakeVarint(&rest, &length);
  return lengths;
}

}  // namespace leat::worker
