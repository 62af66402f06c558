// SPDX-License-Identifier: Apache-2.0
//
// Device: the operations that the worker needs from a GPU. One folder per maker
// implements this, DeviceQueue and ImageDecoder (worker/gpu/cuda/); everything
// else in worker/gpu knows these interfaces only.
//
// Calls serve startup, launches and groups, never a row's pixels. Thread-safe;
// the calling thread has made the device current. Errors: error.h. Devices
// outlive the objects that they have made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/plan/job.h"
#include "worker/compute/gpu_worker.h"
#include "worker/gpu/device/address.h"
#include "worker/gpu/device/queue.h"

namespace leat::worker {

// Another process' memory on the device, mapped here until this is destroyed.
class MappedMemory {
 public:
  // Makes the device current.
  virtual ~MappedMemory() = default;
  virtual DeviceAddress address() const = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const GpuInfo& info() const = 0;
  // Returns the class of its decoder's pixels; nullopt: it has no decoder.
  virtual std::optional<DecoderClass> decoder_class() const = 0;
  // True if it maps memory that another process exports as a file descriptor.
  virtual bool imports() const = 0;

  // Makes the device current on the calling thread, until that makes another
  // one current.
  virtual absl::Status MakeCurrent() const = 0;
  // Keeps the calling thread on cores near the device, if they are known.
  virtual void NearThread() const = 0;

  // Allocate and free memory of the device. Both may wait for all work on the
  // device: they are for startup and shutdown, and for decoders' memory, which
  // is kept.
  virtual absl::StatusOr<DeviceAddress> Allocate(uint64_t bytes) const = 0;
  virtual void Free(DeviceAddress memory) const = 0;
  struct MemoryInfo {
    uint64_t free_bytes = 0, all_bytes = 0;
  };
  virtual MemoryInfo memory() const = 0;

  // Allocates page-locked memory of the host, which every device of this kind
  // copies at full speed.
  virtual absl::StatusOr<std::byte*> AllocatePinned(size_t bytes) const = 0;
  virtual void FreePinned(std::byte* memory) const = 0;
  // Page-locks memory that exists already.
  virtual absl::Status Pin(std::byte* memory, uint64_t bytes) const = 0;
  virtual void Unpin(std::byte* memory) const = 0;

  // Maps memory that another process exported; the caller keeps `fd`.
  // kInvalidArgument: not such memory. REQUIRES: imports().
  virtual absl::StatusOr<std::unique_ptr<MappedMemory>> Import(
      int fd, uint64_t bytes) const = 0;

  virtual absl::StatusOr<std::unique_ptr<DeviceQueue>> MakeQueue() const = 0;
};

}  // namespace leat::worker
