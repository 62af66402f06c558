// SPDX-License-Identifier: Apache-2.0
//
// DeviceMemory: GPU memory for a batch, and as much pinned host memory beside
// it.
//
// The device's part is an allocation of CUDA's virtual memory management,
// mapped in the primary context, with a file descriptor by which a worker can
// map it too; if the device does not support that, it is an ordinary allocation
// without a descriptor, which is not shared. Write goes to the host's part
// first: the owner has an Uploader copy the rows that came that way once the
// batch is complete.
//
// A batch can be released while work that uses it is queued on a stream
// (ReleaseAfter): the memory is busy until an event, recorded on the stream at
// that time, is complete. On a stream that is being captured into a graph there
// is no such event, since each replay reads the memory again: if the batch is
// used (UseOn) or released there, its memory belongs to the graph for ever
// (Reuse::kKept). Thread-compatible, except that Write, CopyFrom and UseOn are
// thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/batch/batch_memory.h"
#include "client/device/gpu.h"
#include "core/mutex.h"

namespace leat::client {

class DeviceMemory : public BatchMemory {
 public:
  // kResourceExhausted: the device, or the host, has no such memory (names the
  // size and what is free).
  static absl::StatusOr<std::shared_ptr<BatchMemory>> Make(
      std::shared_ptr<const Gpu> gpu, size_t bytes);
  // Returns -1 if it is host memory.
  static int OrdinalOf(const BatchMemory& memory);
  // Waits for the streams that still use it; if a graph may use it, for all
  // work of the device.
  ~DeviceMemory() override;

  Kind kind() const override { return Kind::kDevice; }
  std::byte* data() const override;
  int fd() const override { return fd_; }
  size_t mapped_bytes() const override { return mapped_bytes_; }
  std::string device_uuid() const override { return gpu_->uuid(); }
  std::shared_ptr<BatchMemory> host_part() const override { return staging_; }
  // Writes into the host's part.
  void Write(size_t offset, std::span<const std::byte> bytes) override;
  // Copies both parts; on return they are there, or status() is not OK.
  void CopyFrom(const BatchMemory& from, size_t offset, size_t bytes) override;

  const Gpu& gpu() const { return *gpu_; }
  // Returns the first error of all CopyFrom calls so far.
  absl::Status status() const;

  Reuse reuse() override;
  // Calls `ring` from a host function on a separate stream, which waits for the
  // event, so that the trainer's stream is not delayed.
  void RingWhenFree(std::function<void()> ring) override;
  // Declares that work on `stream` will use it.
  void UseOn(cuda::Stream stream);
  // Declares that the work queued on `stream` now still uses it. kInternal,
  // kUnavailable: CUDA's error; it is never used again.
  absl::Status ReleaseAfter(cuda::Stream stream);

 private:
  DeviceMemory(std::shared_ptr<const Gpu> gpu, size_t bytes)
      : gpu_(std::move(gpu)), bytes_(bytes) {}
  absl::Status Init();
  absl::Status Map();
  void Unmap();
  void Pin();
  bool Freed(cuda::Result result) const;
  absl::Status Record(cuda::Stream stream);

  const std::shared_ptr<const Gpu> gpu_;
  const size_t bytes_;
  std::shared_ptr<BatchMemory> staging_;
  mutable Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  bool spoilt_ = false;
  // State that the destructor has to undo.
  bool pinned_ = false;     // staging_
  bool allocated_ = false;  // by cuMemAlloc: no handle, no mapping
  bool created_ = false, reserved_ = false, mapped_ = false;
  size_t mapped_bytes_ = 0;
  cuda::AllocationHandle handle_ = 0;
  cuda::DevicePtr address_ = 0;
  int fd_ = -1;
  cuda::Event event_ = nullptr;  // created when first needed
  bool pending_ = false;         // until `event_` is complete
  // Stream on which an event is to be recorded when no capture prevents it.
  std::optional<cuda::Stream> barred_;
  std::atomic<bool> captured_ = false;  // a graph may read it
  cuda::Stream bell_stream_ = nullptr;  // created for the first waiter
  bool armed_ = false;                  // a callback is queued
};

}  // namespace leat::client
