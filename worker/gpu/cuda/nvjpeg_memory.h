// SPDX-License-Identifier: Apache-2.0
//
// NvjpegMemory: the memory that nvJPEG works in for one slot, on the device and
// page-locked, counted and bounded.
//
// nvJPEG allocates memory while it decodes, and frees it when an image needs
// more. Calling the driver each time would stop the device, so blocks are kept.
// A block that nvJPEG has freed may still be read by the JPEG engines, which do
// not follow their CUDA stream; it is used again only after Reclaim.
//
//   NvjpegMemory memory(&gpu, most_device, most_pinned);
//   nvjpeg.CreateExV2(backend, memory.device(), memory.pinned(), …);
//
// Thread-safe. nvJPEG reports a failure as kAllocatorFailure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "core/mutex.h"
#include "cuda/nvjpeg.h"

namespace leat::worker {

class CudaDevice;

// Blocks of one kind of memory.
class KeptBlocks {
 public:
  enum class Kind : uint8_t { kDevice, kPinned };
  // `gpu` outlives the blocks. Holds at most `most_bytes`.
  KeptBlocks(Kind kind, const CudaDevice* gpu, uint64_t most_bytes);
  // Frees all blocks. REQUIRES: nothing uses them any more.
  ~KeptBlocks();
  KeptBlocks(const KeptBlocks&) = delete;
  KeptBlocks& operator=(const KeptBlocks&) = delete;

  // Returns nullptr if the bound is reached, or the driver has no memory.
  void* Take(size_t bytes);
  // Returns false if the memory was not taken here.
  bool GiveBack(void* memory);
  // Allows blocks that were given back to be taken again.
  void Reclaim();
  // Returns the bytes taken from the driver and not yet returned to it.
  uint64_t held_bytes() const;

 private:
  // Allocates from the driver. If it refuses, unused blocks are returned to it,
  // and it is asked once more.
  void* Obtain(size_t bytes);
  void* TakeKept(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes room below the bound: blocks to be freed are put into `unused`.
  bool Book(size_t bytes, std::vector<void*>* unused)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void* Allocate(size_t bytes) const;
  void Free(void* memory) const;

  const Kind kind_;
  const CudaDevice& gpu_;
  const uint64_t most_bytes_;
  mutable Mutex mu_;
  std::unordered_map<void*, size_t> taken_ ABSL_GUARDED_BY(mu_);
  std::vector<std::pair<size_t, void*>> given_back_ ABSL_GUARDED_BY(mu_);
  std::multimap<size_t, void*> kept_ ABSL_GUARDED_BY(mu_);  // by size
  uint64_t held_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

class NvjpegMemory {
 public:
  // `gpu` outlives the memory; nvJPEG's handles, states and buffers are
  // destroyed before it.
  NvjpegMemory(const CudaDevice* gpu, uint64_t most_device_bytes,
               uint64_t most_pinned_bytes);
  NvjpegMemory(const NvjpegMemory&) = delete;
  NvjpegMemory& operator=(const NvjpegMemory&) = delete;

  cuda::NvjpegDeviceAllocator* device() { return &device_allocator_; }
  cuda::NvjpegPinnedAllocator* pinned() { return &pinned_allocator_; }

  KeptBlocks& device_blocks() { return device_; }
  KeptBlocks& pinned_blocks() { return pinned_; }

  // REQUIRES: the host has waited for all work that the slot's decoding has put
  // on streams and engines.
  void Reclaim();
  uint64_t device_bytes() const { return device_.held_bytes(); }

 private:
  KeptBlocks device_, pinned_;
  cuda::NvjpegDeviceAllocator device_allocator_;
  cuda::NvjpegPinnedAllocator pinned_allocator_;
};

}  // namespace leat::worker
