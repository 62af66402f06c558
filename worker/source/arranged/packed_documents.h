// SPDX-License-Identifier: Apache-2.0
//
// PackedDocuments: a dataset of packed rows, which reads the documents of a row
// from the dataset of another reader.
//
// A row's documents follow from the lengths of its window
// (core/packing/windows.h). A window is opened when a row of it is first
// wanted, which takes a millisecond, and is kept within a bound.
//
// Thread-safe. Reads wait for storage.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/packing/pack_node.h"
#include "core/pipeline/operators.h"
#include "worker/source/arranged/packed_block.h"
#include "worker/source/arranged/row_assembler.h"
#include "worker/source/packed/shard_cache.h"
#include "worker/source/source.h"

namespace leat::worker {

class PackedDocuments final : public FormatSource {
 public:
  // `documents`: the dataset that is packed, and `types` those of its reader's
  // outputs. `block`: the rows of this source. `fingerprint`: of the packed
  // dataset.
  PackedDocuments(std::shared_ptr<const Source> documents, PackNode pack,
                  std::span<const ValueType> types, PackedBlock block,
                  const Digest& fingerprint, const SourceLimits& limits);

  // Returns the pieces of a row, in their order; documents are samples of the
  // dataset that is packed. kDataLoss: the index does not fit itself.
  absl::StatusOr<std::vector<Piece>> PiecesOf(uint64_t row) const;

  uint64_t num_samples() const override { return block_.rows().num_rows(); }
  // A document that is bad, or has another length than its index says, makes
  // its row bad; the error names the document.
  absl::StatusOr<StoredSample> Read(uint64_t row) const override;
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> rows) const override;
  std::string Describe(uint64_t row) const override;
  // Returns the place of the row's first document.
  absl::StatusOr<RecordPlace> Locate(uint64_t row) const override;
  absl::StatusOr<std::optional<RowDocuments>> DocumentsOf(
      uint64_t row, uint64_t first, uint64_t most) const override;
  bool waits() const override { return documents_->waits(); }

 private:
  struct Window;
  // A piece, and how many elements its document has.
  struct Listed {
    Piece piece;
    uint64_t elements = 0;
  };

  absl::StatusOr<std::shared_ptr<const Window>> Open(size_t window) const;
  absl::StatusOr<std::vector<Listed>> ListedPiecesOf(uint64_t row) const;

  const std::shared_ptr<const Source> documents_;
  const PackNode pack_;
  const PackedBlock block_;
  const RowAssembler assembler_;
  mutable ShardCache<Window> windows_;
};

}  // namespace leat::worker
