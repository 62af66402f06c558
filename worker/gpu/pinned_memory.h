// SPDX-License-Identifier: Apache-2.0
//
// PinnedMemory: page-locked memory for batches, which every GPU writes at full
// speed. Thread-safe.
#pragma once

#include <memory>

#include "worker/buffer_pool.h"
#include "worker/gpu/gpu.h"

namespace leat::worker {

class PinnedMemory final : public BufferMemory {
 public:
  explicit PinnedMemory(std::shared_ptr<const Gpu> gpu)
      : gpu_(std::move(gpu)) {}
  std::byte* Allocate(size_t bytes) override;
  void Free(std::byte* memory, size_t bytes) override;

 private:
  const std::shared_ptr<const Gpu> gpu_;
};

}  // namespace leat::worker
