// SPDX-License-Identifier: Apache-2.0
//
// RowAssembler makes a packed row of the pieces of documents that stand in it.
//
// The fields of a row are the values that are packed, in rows of `length`
// elements with padding at the end; then segment_ids and positions, both
// int32[length]. For example pieces of 2 and 1 elements in a row of 4:
//
//     value        a b c fill
//     segment_ids  1 1 2 0
//     positions    0 1 0 0
//
// Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/packing/pack_node.h"
#include "core/pipeline/operators.h"
#include "worker/sample/stored_sample.h"
#include "worker/source/source.h"

namespace leat::worker {

class RowAssembler {
 public:
  // `types`: of the reader's outputs. REQUIRES: those that `pack` names are
  // open tensors, as the operator checks.
  RowAssembler(const PackNode& pack, std::span<const ValueType> types);

  // Adds the pieces of one row, one by one, in their order.
  class Row {
   public:
    explicit Row(const RowAssembler& assembler);
    // `part`: the piece, or its whole document. `listed`: how many elements the
    // index says that the document has. kDataLoss: it has another number of
    // them, or its values differ in it; or it lacks a value. REQUIRES: the row
    // has room for the piece.
    absl::Status Add(const Piece& piece, const StoredPart& part,
                     uint64_t listed);
    // REQUIRES: called once, last.
    StoredSample Finish();

   private:
    const RowAssembler& assembler_;
    std::shared_ptr<std::vector<std::byte>> bytes_;
    uint64_t filled_ = 0;  // elements
    int32_t pieces_ = 0;
  };

 private:
  struct Value {
    uint32_t output = 0;          // of the reader
    size_t element_bytes = 0;     // of one element of the open axis
    size_t offset = 0;            // in the row's bytes
    std::vector<std::byte> fill;  // one element's bytes
  };

  const uint64_t length_;
  std::vector<Value> values_;
  size_t segments_ = 0, positions_ = 0;  // offsets of both
  size_t row_bytes_ = 0;
};

}  // namespace leat::worker
