// SPDX-License-Identifier: Apache-2.0
//
// FusedFields: the fields of a block, while a pipeline is compiled, and the
// tables of their tails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "worker/gpu/fused/tail.h"
#include "worker/gpu/layout/fused_descriptor.h"

namespace leat::worker {

// A field, and the view that it is made from.
struct ViewField {
  uint32_t view;
  FusedField field;
};

class FusedFields {
 public:
  // Adds an output that `tail` makes from a view. Returns false if all tables
  // together are too large: such a pipeline cannot run on the GPU.
  bool AddTail(uint32_t output, uint32_t view, FusedTail tail);
  // Adds an output whose value the host computes.
  void AddHost(uint32_t output, uint32_t bytes);
  // Adds an output that a stage writes.
  void AddStage(uint32_t output);

  std::vector<ViewField>& fields() { return fields_; }
  // Returns the tables, whose begin the fields' offsets count from.
  const std::vector<std::byte>& tables() const { return tables_; }
  // Returns the bytes of a row's host values.
  uint32_t host_stride() const { return host_stride_; }

 private:
  std::vector<ViewField> fields_;
  std::vector<std::byte> tables_;
  uint32_t host_stride_ = 0;
};

}  // namespace leat::worker
