// SPDX-License-Identifier: Apache-2.0
//
// PackedIndexWriter writes the index of packed rows from the lengths of their
// documents, in one walk, and block by block: a dataset of any size takes the
// memory of a block.
//
// A block ends with whole rows. Of rows that are cut, the next block begins
// with the document in which the next row begins, so that document may be in
// both.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/hash.h"
#include "core/packing/windows.h"
#include "leat/stored/v1/indexes.pb.h"

namespace leat::worker {

class PackedIndexWriter {
 public:
  // Takes a block and how many rows it has.
  using Write =
      std::function<absl::Status(const stored::v1::PackedBlock&, uint64_t)>;

  // `chosen`: documents are any samples of the base, and not all of them in
  // order. `block_bytes`: a block ends when it has as many bytes. REQUIRES:
  // CheckPacking(packing) is ok.
  PackedIndexWriter(const Packing& packing, bool chosen, uint64_t block_bytes,
                    Write write);

  // Takes the next document: a sample of the base, and its length. Errors: as
  // WindowCutter::Add, and those of `write`.
  absl::Status Add(uint64_t sample, uint64_t elements);
  // Writes what is left. kInvalidArgument: the documents make no row. REQUIRES:
  // called once, after the last document.
  absl::Status Finish();

  uint64_t num_rows() const { return rows_; }
  uint64_t num_elements() const { return elements_; }
  // Returns the hash of all lengths. REQUIRES: called once, last.
  Digest TakeDigest() { return hash_.Finish(); }

 private:
  struct Document {
    uint64_t sample = 0;
    uint64_t elements = 0;
  };

  absl::Status EndFitted(const PackWindow& window);
  absl::Status EndCut();
  // Writes a block of the first documents that are pending.
  absl::Status Flush(size_t documents);
  bool BlockIsFull() const { return pending_bytes_ >= block_bytes_; }
  uint64_t BytesOf(const Document& document) const;

  const Packing packing_;
  const bool chosen_;
  const uint64_t block_bytes_;
  const Write write_;
  WindowCutter cutter_;
  Sha256 hash_;
  uint64_t elements_ = 0, rows_ = 0;  // so far
  stored::v1::PackedBlock block_;     // its windows, so far
  // Documents that are in no block yet, or also belong to the next one.
  std::vector<Document> pending_;
  uint64_t pending_bytes_ = 0;
  uint64_t first_document_ = 0;  // the number of the first of them
  size_t in_windows_ = 0;        // of them, if rows are fitted
  uint64_t begin_ = 0;  // elements of documents before them, if rows are cut
};

}  // namespace leat::worker
