// SPDX-License-Identifier: Apache-2.0
//
// PackedBlock: a part of the index of packed rows, which has the lengths of all
// documents of its rows. Rows and documents are counted from the block's first.
//
// Lengths stay varints, 1 to 3 bytes each, and are decoded a window at a time.
// Rows that are cut have no windows of their own: the block then counts every
// 16,384 documents as one.
//
// Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/packing/windows.h"
#include "leat/stored/v1/indexes.pb.h"
#include "worker/source/arranged/chosen_samples.h"

namespace leat::worker {

class PackedBlock {
 public:
  // `samples`: how many the base has. kDataLoss: numbers that do
  // not fit each other. REQUIRES: CheckPacking(packing) is ok.
  static absl::StatusOr<PackedBlock> Open(const Packing& packing,
                                          stored::v1::PackedBlock block,
                                          uint64_t samples);

  const PackedRows& rows() const { return rows_; }
  // Returns the base's sample of a document.
  uint64_t SampleOf(uint64_t document) const {
    return chosen_ ? chosen_->At(document) : first_document_ + document;
  }
  // Returns the lengths of a window's documents. REQUIRES: window <
  // rows().num_windows().
  std::vector<uint64_t> LengthsOf(size_t window) const;

 private:
  PackedBlock(PackedRows rows, uint64_t first_document,
              std::optional<ChosenSamples> chosen, std::string lengths,
              std::vector<size_t> window_begins)
      : rows_(std::move(rows)),
        first_document_(first_document),
        chosen_(std::move(chosen)),
        lengths_(std::move(lengths)),
        window_begins_(std::move(window_begins)) {}

  PackedRows rows_;
  uint64_t first_document_;
  std::optional<ChosenSamples> chosen_;  // the documents, if not one by one
  std::string lengths_;
  std::vector<size_t> window_begins_;  // in lengths_
};

}  // namespace leat::worker
