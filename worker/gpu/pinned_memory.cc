// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/pinned_memory.h"

#include "core/log.h"
#include "core/status.h"

namespace leat::worker {

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

}  // namespace leat::worker
