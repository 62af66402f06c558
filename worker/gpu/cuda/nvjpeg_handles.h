// SPDX-License-Identifier: Apache-2.0
//
// NvjpegHandles: nvJPEG's handles of a slot, or of all slots of a GPU, and the
// memory that nvJPEG works in.
//
// Each slot has memory of its own. A handle's allocators do not learn for which
// slot they allocate, so the thread that calls nvJPEG for a slot says it:
//
//   const NvjpegHandles::Use use(memory);
//   nvjpeg.DecodeBatchedEx(handles.engines(), …);
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "cuda/nvjpeg.h"
#include "worker/gpu/cuda/nvjpeg_device.h"
#include "worker/gpu/cuda/nvjpeg_memory.h"

namespace leat::worker {

// Thread-safe.
class NvjpegHandles {
 public:
  // Whatever nvJPEG allocates for the handles, and on threads without a Use, is
  // in `*first`, the first slot's memory, of at most `most_bytes`. `device`
  // and its parts outlive the handles. The GPU's context is current.
  static absl::StatusOr<std::shared_ptr<NvjpegHandles>> Create(
      const NvjpegDevice& device, uint64_t most_bytes, NvjpegMemory** first);
  // REQUIRES: states, buffers and bitstreams of the handles are destroyed.
  ~NvjpegHandles();

  cuda::NvjpegHandle engines() const { return engines_; }  // nullptr: none
  cuda::NvjpegHandle cuda() const { return cuda_; }
  // Returns memory for a further slot, which the handles own.
  NvjpegMemory* AddMemory(uint64_t most_bytes);

  // While it exists, nvJPEG allocates from this memory on this thread.
  class Use {
   public:
    explicit Use(NvjpegMemory* memory);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    NvjpegMemory* const before_;
  };

 private:
  explicit NvjpegHandles(const NvjpegDevice& device);
  absl::Status Open(cuda::NvjpegBackend backend, cuda::NvjpegHandle* handle);
  template <KeptBlocks& (NvjpegMemory::*kBlocks)()>
  static int Take(void* handles, void** memory, size_t bytes, cuda::Stream);
  template <KeptBlocks& (NvjpegMemory::*kBlocks)()>
  static int GiveBack(void* handles, void* memory, size_t, cuda::Stream);

  const NvjpegDevice& device_;
  Mutex mu_;
  std::vector<std::unique_ptr<NvjpegMemory>> memories_ ABSL_GUARDED_BY(mu_);
  cuda::NvjpegDeviceAllocator device_allocator_;
  cuda::NvjpegPinnedAllocator pinned_allocator_;
  cuda::NvjpegHandle engines_ = nullptr, cuda_ = nullptr;
};

}  // namespace leat::worker
