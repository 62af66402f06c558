// SPDX-License-Identifier: Apache-2.0
//
// RawNvjpeg: one backend of nvJPEG, used as its documentation shows, without
// the worker's code: its answers, its memory requests, its speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "cuda/nvjpeg.h"
#include "worker/gpu/cuda/queue.h"

namespace leat::gpu_check {

// Returns "HARDWARE", "HYBRID", …
std::string_view NameOf(cuda::NvjpegBackend backend);
// Returns "SUCCESS", "BAD_JPEG", …
std::string NameOf(cuda::NvjpegResult result);

// A handle whose allocations are counted. The GPU's context is current on every
// calling thread. Thread-safe.
class RawNvjpeg {
 public:
  // Both outlive it. Errors: the backend's, if this GPU does not support it.
  static absl::StatusOr<std::unique_ptr<RawNvjpeg>> Open(
      const cuda::Nvjpeg* nvjpeg, const worker::CudaDevice* gpu,
      cuda::NvjpegBackend backend,
      cuda::Flags flags = cuda::kNvjpegFlagsDefault);
  ~RawNvjpeg();

  const cuda::Nvjpeg& nvjpeg() const { return nvjpeg_; }
  const worker::CudaDevice& gpu() const { return gpu_; }
  cuda::NvjpegHandle handle() const { return handle_; }
  cuda::NvjpegBackend backend() const { return backend_; }
  cuda::NvjpegDeviceAllocator* device() { return &device_; }
  cuda::NvjpegPinnedAllocator* pinned() { return &pinned_; }
  // The most of the device's memory, and of page-locked memory, that it held.
  uint64_t most_device_bytes() const { return device_bytes_.most(); }
  uint64_t most_pinned_bytes() const { return pinned_bytes_.most(); }

 private:
  RawNvjpeg(const cuda::Nvjpeg* nvjpeg, const worker::CudaDevice* gpu,
            cuda::NvjpegBackend backend);
  static int AllocateDevice(void* self, void** memory, size_t bytes,
                            cuda::Stream stream);
  static int FreeDevice(void* self, void* memory, size_t bytes,
                        cuda::Stream stream);
  static int AllocatePinned(void* self, void** memory, size_t bytes,
                            cuda::Stream stream);
  static int FreePinned(void* self, void* memory, size_t bytes,
                        cuda::Stream stream);

  const cuda::Nvjpeg& nvjpeg_;
  const worker::CudaDevice& gpu_;
  const cuda::NvjpegBackend backend_;
  // Allocations by address: it is not documented which size nvJPEG passes when
  // it frees. Thread-safe.
  class Held {
   public:
    void Add(const void* memory, uint64_t bytes);
    void Remove(const void* memory);
    uint64_t most() const;

   private:
    mutable Mutex mu_;
    absl::flat_hash_map<const void*, uint64_t> sizes_ ABSL_GUARDED_BY(mu_);
    uint64_t now_ ABSL_GUARDED_BY(mu_) = 0, most_ ABSL_GUARDED_BY(mu_) = 0;
  } device_bytes_, pinned_bytes_;
  cuda::NvjpegDeviceAllocator device_;
  cuda::NvjpegPinnedAllocator pinned_;
  cuda::NvjpegHandle handle_ = nullptr;
};

// The destination of a file's pixels: R, G, B interleaved.
struct RawImage {
  std::span<const std::byte> file;
  worker::DeviceAddress address;
  size_t pitch = 0;
};

// Decodes batches by nvjpegDecodeBatched, on a stream of its own.
// Thread-compatible.
class RawBatches {
 public:
  static absl::StatusOr<std::unique_ptr<RawBatches>> Open(RawNvjpeg* nvjpeg);
  ~RawBatches();
  // Returns the call's result; the pixels are there after Wait. One batch at a
  // time.
  cuda::NvjpegResult Decode(std::span<const RawImage> images);
  worker::DeviceQueue& queue() const { return *queue_; }
  absl::Status Wait() const { return queue_->Wait(); }

 private:
  explicit RawBatches(RawNvjpeg* nvjpeg) : nvjpeg_(*nvjpeg) {}
  RawNvjpeg& nvjpeg_;
  std::unique_ptr<worker::CudaQueue> queue_;
  cuda::NvjpegState state_ = nullptr;
};

// Decodes image by image in phases, so that the host works on one while the
// device works on another; on a stream of its own. Thread-compatible.
class RawPhases {
 public:
  static absl::StatusOr<std::unique_ptr<RawPhases>> Open(RawNvjpeg* nvjpeg);
  ~RawPhases();
  cuda::NvjpegResult Decode(const RawImage& image);
  absl::Status Wait() const { return nvjpeg_.gpu().WaitStream(stream_); }

 private:
  explicit RawPhases(RawNvjpeg* nvjpeg) : nvjpeg_(*nvjpeg) {}
  absl::Status Create();
  RawNvjpeg& nvjpeg_;
  cuda::Stream stream_ = nullptr;
  cuda::NvjpegDecoder decoder_ = nullptr;
  cuda::NvjpegParams params_ = nullptr;
  struct Phase {
    cuda::NvjpegStream parsed = nullptr;
    cuda::NvjpegState state = nullptr;
    cuda::NvjpegPinnedBuffer pinned = nullptr;
    cuda::NvjpegDeviceBuffer device = nullptr;
  } phases_[2];
  size_t next_ = 0;
};

}  // namespace leat::gpu_check
