// SPDX-License-Identifier: Apache-2.0
//
// RowPacker packs the chosen samples, the documents, into rows of one length:
// an item is a row (packed_block.h).
//
// It needs the length of each document. The index of the base may have it
// (Source::IndexedColumn, "length"); otherwise the records are read, several
// together, by SourceLimits::listing_threads. A record that is bad by itself is
// left out, and counted as passed over.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/packing/pack_node.h"
#include "core/pipeline/operators.h"
#include "worker/source/arranged/item_writer.h"
#include "worker/source/arranged/listing_trail.h"
#include "worker/source/arranged/packed_index_writer.h"
#include "worker/source/source.h"

namespace leat::worker {

class RowPacker final : public ItemWriter {
 public:
  // `types`: of the reader's outputs. `chosen`: not all samples, in order.
  // `documents` and `trail` outlive it. REQUIRES: the values of `pack` are open tensors.
  RowPacker(PackNode pack, std::vector<ValueType> types, bool chosen,
            const Source* documents, const SourceLimits& limits,
            ListingTrail* trail);

  // Errors: also those of the documents' index, if it cannot be looked at now.
  absl::Status Begin(const std::string& text, const Digest& base) override;
  // kInvalidArgument names a document that the packing refuses.
  absl::Status Add(uint64_t sample) override;
  absl::StatusOr<std::string> Finish() override;
  uint64_t items() const override { return writer_.num_rows(); }
  uint64_t chosen() const override { return chosen_samples_; }
  Digest TakeDigest() override { return writer_.TakeDigest(); }
  std::vector<PassedOver> TakePassedOver() override {
    return passed_over_.Take();
  }

 private:
  static constexpr uint64_t kNoLength = UINT64_MAX;  // a bad record

  // Finds the lengths of the samples that are pending, and writes them.
  absl::Status Measure();
  absl::StatusOr<std::vector<uint64_t>> ReadLengths() const;
  absl::StatusOr<std::vector<uint64_t>> TakeOrReadLengths();
  absl::Status MeasureSome(std::span<const uint64_t> samples,
                           std::span<uint64_t> lengths) const;
  uint64_t LengthOf(const StoredSample& stored) const;

  const PackNode pack_;
  const std::vector<ValueType> types_;
  const Source* const documents_;
  const SourceLimits limits_;
  ListingTrail* const trail_;
  bool indexed_ = false;        // the base's index has lengths; set by Begin
  const size_t element_bytes_;  // of the first value's open axis
  BlobWriter blob_;
  PackedIndexWriter writer_;
  uint64_t chosen_samples_ = 0;
  std::vector<uint64_t> pending_;
  PassedOverCounts passed_over_;
};

}  // namespace leat::worker
