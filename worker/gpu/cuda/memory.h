// SPDX-License-Identifier: Apache-2.0
//
// CudaMemory: an allocation of CUDA's virtual memory management that another
// process passed as a file descriptor, mapped into our context.
#pragma once

#include <memory>

#include "worker/gpu/cuda/device.h"

namespace leat::worker {

class CudaMemory final : public MappedMemory {
 public:
  // `device` outlives the memory; the caller keeps `fd`. kInvalidArgument: not
  // `bytes` of such an allocation.
  static absl::StatusOr<std::unique_ptr<CudaMemory>> Map(
      const CudaDevice& device, int fd, uint64_t bytes);
  ~CudaMemory() override;
  DeviceAddress address() const override { return DeviceAddress(address_); }

 private:
  CudaMemory(const CudaDevice& device, uint64_t bytes)
      : device_(device), bytes_(bytes) {}
  absl::Status MapAll(int fd);
  absl::Status CheckSize() const;

  const CudaDevice& device_;
  const uint64_t bytes_;
  cuda::AllocationHandle handle_ = 0;
  cuda::DevicePtr address_ = 0;
  bool mapped_ = false;
};

}  // namespace leat::worker
