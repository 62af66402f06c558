// SPDX-License-Identifier: Apache-2.0
//
// CudaDevice: a GPU through CUDA's driver: its primary context, and our kernels
// in it. If the machine has nvJPEG, that is its decoder.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/driver.h"
#include "cuda/nvjpeg.h"
#include "worker/gpu/cuda/nvjpeg_device.h"
#include "worker/gpu/device/device.h"
#include "worker/gpu/kernels/names.h"

namespace leat::worker {

class CudaDevice final : public Device {
 public:
  // Makes the GPU of this index ready. REQUIRES: the driver is initialised.
  // `nvjpeg` nullptr: there is none. If nvJPEG does not work on this GPU, this
  // is logged, and the device has no decoder.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Open(
      std::shared_ptr<const cuda::Driver> driver,
      std::shared_ptr<const cuda::Nvjpeg> nvjpeg, int index);
  ~CudaDevice() override;

  const GpuInfo& info() const override { return info_; }
  std::optional<DecoderClass> decoder_class() const override;
  bool imports() const override { return imports_; }
  absl::Status MakeCurrent() const override;
  void NearThread() const override;
  absl::StatusOr<DeviceAddress> Allocate(uint64_t bytes) const override;
  void Free(DeviceAddress memory) const override;
  MemoryInfo memory() const override;
  absl::StatusOr<std::byte*> AllocatePinned(size_t bytes) const override;
  void FreePinned(std::byte* memory) const override;
  absl::Status Pin(std::byte* memory, uint64_t bytes) const override;
  void Unpin(std::byte* memory) const override;
  absl::StatusOr<std::unique_ptr<MappedMemory>> Import(
      int fd, uint64_t bytes) const override;
  absl::StatusOr<std::unique_ptr<DeviceQueue>> MakeQueue() const override;

  // --- For this folder, and for tests of CUDA itself ------------------------

  const cuda::Driver& driver() const { return *driver_; }
  // nullptr: there is none, or it does not work on this GPU.
  const NvjpegDevice* nvjpeg() const { return nvjpeg_device_.get(); }
  cuda::Function kernel(KernelId kernel) const {
    return kernels_[IndexOf(kernel)];
  }
  // Waits until the stream is empty.
  absl::Status WaitStream(cuda::Stream stream) const;
  absl::Status Check(cuda::Result result, const char* call) const;
  // For calls that release something, whose callers cannot return an error:
  // logs the first failure. On a lost GPU everything fails, and the loss has
  // been logged.
  void Released(cuda::Result result, const char* call) const;
  void Released(cuda::NvjpegResult result, const char* call) const;

 private:
  CudaDevice(std::shared_ptr<const cuda::Driver> driver,
             std::shared_ptr<const cuda::Nvjpeg> nvjpeg, int index);
  absl::Status Describe();
  absl::Status DescribeAbilities();
  absl::Status Retain();
  absl::Status LoadKernels();
  void OpenNvjpeg();
  void SayNotReleased(const absl::Status& status) const;

  const std::shared_ptr<const cuda::Driver> driver_;
  const std::shared_ptr<const cuda::Nvjpeg> nvjpeg_;
  std::unique_ptr<const NvjpegDevice> nvjpeg_device_;
  GpuInfo info_;
  bool imports_ = false;
  std::string cores_;  // near it, in the kernel's notation; empty: not known
  cuda::Device device_ = 0;
  cuda::Context context_ = nullptr;
  cuda::Module module_ = nullptr;
  std::array<cuda::Function, kNumKernels> kernels_{};
  mutable std::atomic<bool> lost_{false};
  mutable std::atomic<bool> said_{false};  // a failure to release was logged
};

}  // namespace leat::worker
