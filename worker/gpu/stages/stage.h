// SPDX-License-Identifier: Apache-2.0
//
// Stage: one launch of a pipeline behind the fused kernel: an operator, or a
// part of one, for all rows of a group. Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "worker/gpu/layout/stage_descriptor.h"
#include "worker/gpu/layout/whose.h"
#include "worker/image/operators/kernel.h"
#include "worker/image/program/program.h"

namespace leat::worker {

// Where a stage finds a tensor, or leaves one.
struct StageTensor {
  enum class In : uint8_t {
    kValues,     // a value of the row, in the slot's memory
    kHost,       // a value that the host computed, in the block
    kConstants,  // the same for all rows, in the block
    kField,      // the place of a field
  };
  In in = In::kValues;
  uint32_t index = 0;  // of the value, the host's value, the field; an offset
  DType dtype = DType::kUint8;
  Shape shape;  // -1: a size of the row's own
  // Where it has such: the value (ValueIndex) whose sizes it has in each row.
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
  // Of the row's fault word. REQUIRES: StageBuilder::AddFault was called.
  virtual uint64_t FaultAddress() const = 0;
  // Valid as long as the tensor and values().
  Sizes SizesOf(const StageTensor& tensor) const;
  // The values of the sample's nodes: sizes, and data of those that the host
  // has computed.
  virtual const std::vector<Tensor>& values() const = 0;
  virtual const RowInput& input() const = 0;
  virtual uint64_t seed() const = 0;
  // The form of a kernel's step, which is made once for all stages of the node
  // that follow each other. Valid until the next call.
  absl::StatusOr<const DeviceForm*> FormOnce(const Step& step) const;

 private:
  mutable uint32_t form_of_ = kNoValue;  // the node; kNoValue: none
  mutable DeviceForm form_;
};

// Memory of the block that a stage has for one row.
struct StageMemory {
  std::byte* descriptor;  // of descriptor_bytes()
  // More, of extra_bytes(): here, and on the device.
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
  // Whose values it computes.
  Whose whose() const { return whose_; }
  void BelongTo(Whose whose) { whose_ = whose; }
  // The most for one row; 0: as many as its value has elements at most.
  uint32_t threads() const { return threads_; }
  virtual size_t descriptor_bytes() const = 0;
  virtual size_t extra_bytes() const { return 0; }
  virtual std::vector<const StageTensor*> operands() const = 0;
  // Writes the descriptor of a row, but for head.out, and the extra memory.
  // Errors: what RowProgram would say of the row, or kResourceExhausted: it is
  // more than there is room for; either way it is for the CPU.
  virtual absl::Status Bind(const StageRow& row,
                            const StageMemory& memory) const = 0;

 protected:
  // A thread an element.
  static uint32_t ThreadsFor(const StageTensor& tensor) {
    return tensor.by_row() ? 0 : static_cast<uint32_t>(tensor.elements());
  }
  StageHead HeadOf(uint64_t threads) const {
    return {.threads = static_cast<uint32_t>(threads), .dtype = out_.dtype};
  }

 private:
  const StageKind kind_;
  Whose whose_ = Whose::kRow;
  StageTensor out_;
  const uint32_t threads_;
};

// The form of a kernel's step for a row.
absl::StatusOr<DeviceForm> FormOf(const Step& step, const KernelStep& operation,
                                  const StageRow& row);

}  // namespace leat::worker
