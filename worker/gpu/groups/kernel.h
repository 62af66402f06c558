// SPDX-License-Identifier: Apache-2.0
//
// GpuKernel: a pipeline on the GPUs of a worker.
//
// A group uses the GPU with the most free slots, or the one whose memory its
// consumer shared. Thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "worker/compute/row_kernel.h"
#include "worker/gpu/groups/queue.h"

namespace leat::worker {

class GpuKernel final : public RowKernel {
 public:
  // `queues`: those that can run the program, at least one; they outlive the
  // kernel.
  GpuKernel(GpuProgram program, std::vector<GpuQueue*> queues)
      : program_(std::move(program)), queues_(std::move(queues)) {}

  // Only class `exact` uses this.
  absl::Status Run(
      const RowInput& input, ThreadState* state,
      std::span<const std::span<std::byte>> outputs) const override;
  bool staged(bool on_device) const override {
    return on_device || program_.fused != nullptr;
  }
  size_t most_rows() const override { return program_.most_rows; }
  bool CanBegin(int device) const override;
  std::unique_ptr<KernelGroup> BeginGroup(
      const GroupOutputs& outputs) const override;

 private:
  // True if groups for `device` (-1: the host) may use the queue.
  static bool IsOf(const GpuQueue* queue, int device);
  GpuQueue* Choose(int device) const;

  const GpuProgram program_;
  const std::vector<GpuQueue*> queues_;
};

// kUnimplemented: the pipeline cannot run on these GPUs in this class (says
// why). `group_bytes`, `slot_bytes`: the bytes of a slot for results, and for
// pixels and values.
absl::StatusOr<GpuProgram> CompileForGpu(const CheckedGraph& graph,
                                         DecoderClass decoder_class,
                                         uint64_t group_bytes,
                                         uint64_t slot_bytes);

}  // namespace leat::worker
