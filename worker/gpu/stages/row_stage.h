// SPDX-License-Identifier: Apache-2.0
//
// RowStage: a stage whose descriptor, a Row of layout/stage_descriptor.h, is
// made by a function.
#pragma once

#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "core/status.h"
#include "worker/gpu/stages/stage.h"

namespace leat::worker {

template <class Row>
class RowStage final : public Stage {
 public:
  // Returns the descriptor with its head's threads, and writes the extra
  // memory. Errors: those of Stage::Bind.
  using Describe = std::function<absl::StatusOr<Row>(
      const StageRow& row, const StageMemory& memory)>;

  RowStage(StageKind kind, std::vector<StageTensor> operands,
           const StageTensor& out, uint32_t threads, Describe describe,
           size_t extra_bytes = 0)
      : Stage(kind, out, threads),
        operands_(std::move(operands)),
        describe_(std::move(describe)),
        extra_bytes_(extra_bytes) {}

  size_t descriptor_bytes() const override { return sizeof(Row); }
  size_t extra_bytes() const override { return extra_bytes_; }
  std::vector<const StageTensor*> operands() const override {
    std::vector<const StageTensor*> all;
    for (const StageTensor& operand : operands_) all.push_back(&operand);
    return all;
  }
  absl::Status Bind(const StageRow& row,
                    const StageMemory& memory) const override {
    ASSIGN_OR_RETURN(Row descriptor, describe_(row, memory));
    descriptor.head.dtype = out().dtype;
    memcpy(memory.descriptor, &descriptor, sizeof descriptor);
    return absl::OkStatus();
  }

 private:
  const std::vector<StageTensor> operands_;
  const Describe describe_;
  const size_t extra_bytes_;
};

}  // namespace leat::worker
