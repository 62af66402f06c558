// SPDX-License-Identifier: Apache-2.0
//
// Stage: one launch of a pipeline after the fused kernel: an operator, or a
// part of one, for all rows of a group. Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "core/status.h"
#include "worker/gpu/layout/stage_descriptor.h"
#include "worker/gpu/layout/whose.h"
#include "worker/image/operators/kernel.h"
#include "worker/image/program/program.h"

namespace leat::worker {

// Where a stage reads or writes a tensor.
struct StageTensor {
  enum class In : uint8_t {
    kValues,     // a value of the row, in the slot's memory
    kHost,       // a value that the host computed, in the block
    kConstants,  // the same for all rows, in the block
    kField,      // the place of a field
  };
  In in = In::kValues;
  uint32_t index = 0;  // of the value, host's value or field; or an offset
  DType dtype = DType::kUint8;
  Shape shape;  // -1: a size that differs from row to row
  // If it has such sizes: the value (ValueIndex) whose sizes it has in each
  // row.
  uint32_t sized_by = kNoValue;

  bool by_row() const { return sized_by != kNoValue; }
  // REQUIRES: !by_row().
  uint64_t elements() const;
  uint64_t bytes() const { return elements() * SizeOf(dtype); }
};

// The sizes of a tensor in a row.
using Sizes = std::span<const int64_t>;
uint64_t ElementsOf(Sizes sizes);

// A row that stages are bound to, as one of its samples sees it.
class StageRow {
 public:
  virtual ~StageRow() = default;
  virtual uint64_t AddressOf(const StageTensor& tensor) const = 0;
  // Returns the address of the row's fault word. REQUIRES:
  // StageBuilder::AddFault was called.
  virtual uint64_t FaultAddress() const = 0;
  // Valid as long as the tensor and values().
  Sizes SizesOf(const StageTensor& tensor) const;
  // Returns the values of the sample's nodes: sizes, and data of those that the
  // host has computed.
  virtual const std::vector<Tensor>& values() const = 0;
  virtual const RowInput& input() const = 0;
  // Returns the form of a kernel's step. It is made once for successive stages
  // of the same node. Valid until the next call.
  absl::StatusOr<const DeviceForm*> FormOnce(const Step& step) const;

 private:
  mutable uint32_t form_of_ = kNoValue;  // the node; kNoValue: none
  mutable DeviceForm form_;
};

// Memory in the block that a stage has for one row.
struct StageMemory {
  std::byte* descriptor;  // descriptor_bytes() bytes
  // Further extra_bytes() bytes: the host's address, and the device's.
  std::byte* extra;
  uint64_t extra_at;
};

class Stage {
 public:
  Stage(StageKind kind, StageTensor out, uint32_t threads)
      : kind_(kind), out_(std::move(out)), threads_(threads) {}
  virtual ~Stage() = default;

  StageKind kind() const { return kind_; }
  const StageTensor& out() const { return out_; }
  void WriteTo(const StageTensor& out) { out_ = out; }
  // The sample whose values it computes.
  Whose whose() const { return whose_; }
  void BelongTo(Whose whose) { whose_ = whose; }
  // The most threads for one row; 0: as many as its value can have elements.
  uint32_t threads() const { return threads_; }
  virtual size_t descriptor_bytes() const = 0;
  virtual size_t extra_bytes() const { return 0; }
  virtual std::vector<const StageTensor*> operands() const = 0;
  // Writes the descriptor of a row, except head.out, and the extra memory.
  // Errors: those of RowProgram for the row, or kResourceExhausted: the row
  // exceeds the room. In either case the CPU computes the row.
  virtual absl::Status Bind(const StageRow& row,
                            const StageMemory& memory) const = 0;

 private:
  const StageKind kind_;
  Whose whose_ = Whose::kRow;
  StageTensor out_;
  const uint32_t threads_;
};

// Returns the threads of a launch with one per element, as Stage::threads does.
inline uint32_t ThreadsFor(const StageTensor& tensor) {
  return tensor.by_row() ? 0 : static_cast<uint32_t>(tensor.elements());
}

// Returns the head of a row's descriptor, without its result.
inline StageHead HeadOf(uint64_t threads) {
  return {.threads = static_cast<uint32_t>(threads)};
}

// Returns the form of a kernel's step for a row.
absl::StatusOr<DeviceForm> FormOf(const Step& step, const StageRow& row);

// Returns it if it is a Form, as it should be.
template <class Form>
absl::StatusOr<Form> FormFor(const Step& step, const StageRow& row) {
  ASSIGN_OR_RETURN(DeviceForm form, FormOf(step, row));
  if (auto* of_kind = std::get_if<Form>(&form)) return std::move(*of_kind);
  return Internal("node {} has another form", step.node);
}

}  // namespace leat::worker
