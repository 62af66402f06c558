// SPDX-License-Identifier: Apache-2.0
//
// DeviceBytes: memory of the device, as another process has it; the fake driver
// keeps it on the host.
#pragma once

#include <cstddef>
#include <memory>

#include "cuda/driver.h"

namespace leat::worker {

class DeviceBytes {
 public:
  explicit DeviceBytes(size_t bytes)
      : driver_(*cuda::LoadDriver(cuda::LibrarySearch::FromEnvironment())) {
    driver_->Init(0);
    driver_->DevicePrimaryCtxRetain(&context_, 0);
    driver_->CtxSetCurrent(context_);
    driver_->MemAlloc(&address_, bytes);
  }
  ~DeviceBytes() {
    driver_->CtxSetCurrent(context_);
    driver_->MemFree(address_);
    driver_->DevicePrimaryCtxRelease(0);
  }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  // Returns nullptr if the device had too little memory.
  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }

 private:
  const std::shared_ptr<const cuda::Driver> driver_;
  cuda::Context context_ = nullptr;
  cuda::DevicePtr address_ = 0;
};

}  // namespace leat::worker
