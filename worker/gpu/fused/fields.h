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

// A field, and the view that it is made of.
struct ViewField {
  uint32_t view;
  FusedField field;
};

class FusedFields {
 public:
  // The output is what `tail` makes of a view. Returns false if all tables
  // together are too large: such a pipeline cannot run on the GPU.
  bool AddTail(uint32_t output, uint32_t view, FusedTail tail);
  // The output is a value that the host computes.
  void AddHost(uint32_t output, uint32_t bytes);
  // The output is what a stage writes.
  void AddStage(uint32_t output);

  std::vector<ViewField>& fields() { return fields_; }
  // Where the fields' places count from.
  const std::vector<std::byte>& tables() const { return tables_; }
  // Bytes of a row's values of the host's.
  uint32_t host_stride() const { return host_stride_; }

 private:
  std::vector<ViewField> fields_;
  std::vector<std::byte> tables_;
  uint32_t host_stride_ = 0;
};

}  // namespace leat::worker
