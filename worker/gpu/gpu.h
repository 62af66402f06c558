// SPDX-License-Identifier: Apache-2.0
//
// Gpu: what a GPU is asked to do, by a slot: copies, the fused kernel, waiting.
//
// Errors of all calls: kResourceExhausted: the GPU has no memory for this now;
// the same with less may succeed. IsPoisoned: nothing will succeed any more in
// this process. Others: this call failed.
// Thread-safe; the calling thread has made the context current.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/driver.h"
#include "worker/gpu/fused_program.h"
#include "worker/gpu/slot.h"
#include "worker/gpu_worker.h"

namespace leat::worker {

class Gpu {
 public:
  // Makes the GPU of this index ready: its context, and our kernels in it. The
  // driver has been initialised. Says nothing of nvJPEG in `info`.
  static absl::StatusOr<std::unique_ptr<Gpu>> Open(
      std::shared_ptr<const cuda::Driver> driver, int index);
  ~Gpu();

  const cuda::Driver& driver() const { return *driver_; }
  const GpuInfo& info() const { return info_; }
  GpuInfo& info() { return info_; }
  // Whether it maps memory that another process exports as a file descriptor.
  bool imports() const { return imports_; }
  absl::Status MakeCurrent() const;
  // Keeps the calling thread on cores near the GPU, where that is known.
  void NearThread() const;

  absl::Status ToDevice(uint64_t to, const void* from, size_t bytes,
                        cuda::Stream stream) const;
  absl::Status ToHost(void* to, uint64_t from, size_t bytes,
                      cuda::Stream stream) const;
  absl::Status Fill(uint64_t to, uint8_t value, size_t bytes,
                    cuda::Stream stream) const;
  // The fused kernel, and the stages behind it.
  absl::Status Launch(const FusedProgram& program, size_t rows, uint64_t block,
                      cuda::Stream stream) const;
  // slot.done marks what is on the stream now.
  absl::Status Record(const Slot& slot) const;
  // Asleep until slot.done's mark.
  absl::Status WaitEvent(const Slot& slot) const;
  // Until the stream is empty.
  absl::Status Wait(const Slot& slot) const { return WaitStream(slot.stream); }
  absl::Status WaitStream(cuda::Stream stream) const;

  absl::Status Check(cuda::Result result, const char* call) const;
  static bool IsPoisoned(const absl::Status& status);
  // The error, as one that poisons.
  static absl::Status Poisoned(absl::Status status);

 private:
  Gpu(std::shared_ptr<const cuda::Driver> driver, int index);
  absl::Status Describe();
  absl::Status Retain();
  absl::Status LoadKernels();
  // `parameter`: the kernel's only one.
  absl::Status Launch(cuda::Function kernel, const LaunchConfig& config,
                      uint64_t parameter, cuda::Stream stream) const;

  const std::shared_ptr<const cuda::Driver> driver_;
  GpuInfo info_;
  bool imports_ = false;
  std::string cores_;  // near it, as the kernel lists them; empty: not known
  cuda::Device device_ = 0;
  cuda::Context context_ = nullptr;
  cuda::Module module_ = nullptr;
  std::array<cuda::Function, 4> fused_{};  // by kFusedKernels
  std::array<cuda::Function, kStageKinds> stages_{};
};

}  // namespace leat::worker
