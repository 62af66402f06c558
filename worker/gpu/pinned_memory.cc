// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/pinned_memory.h"

#include <utility>

#include "core/log.h"
#include "core/status.h"

namespace leat::worker {
namespace {

class PinnedLent final : public LentMemory {
 public:
  PinnedLent(std::shared_ptr<const Gpu> gpu,
             std::shared_ptr<const LentMemory> memory)
      : gpu_(std::move(gpu)), memory_(std::move(memory)) {}
  // Groups that write to it are over. A failure means that the GPU is lost.
  ~PinnedLent() override {
    (void)gpu_->MakeCurrent();
    gpu_->driver().MemHostUnregister(memory_->base());
  }

  std::byte* base() const override { return memory_->base(); }
  int device() const override { return memory_->device(); }
  uint32_t rows() const override { return memory_->rows(); }
  std::span<const uint64_t> field_offsets() const override {
    return memory_->field_offsets();
  }

 private:
  const std::shared_ptr<const Gpu> gpu_;
  const std::shared_ptr<const LentMemory> memory_;
};

}  // namespace

std::byte* PinnedMemory::Allocate(size_t bytes) {
  void* memory = nullptr;
  absl::Status status = gpu_->MakeCurrent();
  if (status.ok())
    status = gpu_->Check(
        gpu_->driver().MemHostAlloc(&memory, bytes, cuda::kHostAllocPortable),
        "cuMemHostAlloc");
  if (status.ok()) return static_cast<std::byte*>(memory);
  LOG_WARN("gpu.no_pinned_memory bytes={} error=\"{}\"", bytes,
           Message(status));
  return nullptr;
}

void PinnedMemory::Free(std::byte* memory, size_t) {
  (void)gpu_->MakeCurrent();
  gpu_->driver().MemFreeHost(memory);
}

std::shared_ptr<const LentMemory> PinLent(
    std::shared_ptr<const Gpu> gpu, std::shared_ptr<const LentMemory> memory,
    uint64_t mapped_bytes) {
  absl::Status status = gpu->MakeCurrent();
  if (status.ok())
    status =
        gpu->Check(gpu->driver().MemHostRegister(memory->base(), mapped_bytes,
                                                 cuda::kHostRegisterPortable),
                   "cuMemHostRegister");
  if (status.ok())
    return std::make_shared<PinnedLent>(std::move(gpu), std::move(memory));
  LOG_WARN("gpu.lent_not_pinned bytes={} error=\"{}\"", mapped_bytes,
           Message(status));
  return memory;
}

}  // namespace leat::worker
