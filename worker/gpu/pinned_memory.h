// SPDX-License-Identifier: Apache-2.0
//
// Page-locked memory for batches, which every GPU writes at full speed: our
// own, and what consumers lend.
#pragma once

#include <cstdint>
#include <memory>

#include "worker/buffer_pool.h"
#include "worker/gpu/gpu.h"
#include "worker/row_work.h"

namespace leat::worker {

// Thread-safe.
class PinnedMemory final : public BufferMemory {
 public:
  explicit PinnedMemory(std::shared_ptr<const Gpu> gpu)
      : gpu_(std::move(gpu)) {}
  std::byte* Allocate(size_t bytes) override;
  void Free(std::byte* memory, size_t bytes) override;

 private:
  const std::shared_ptr<const Gpu> gpu_;
};

// Page-locks `mapped_bytes` of host memory until the result is dropped. Where
// the driver refuses (says so in the log): the memory as it is, which the GPU
// then writes by way of the driver's own buffer, with the caller waiting.
std::shared_ptr<const LentMemory> PinLent(
    std::shared_ptr<const Gpu> gpu, std::shared_ptr<const LentMemory> memory,
    uint64_t mapped_bytes);

}  // namespace leat::worker
