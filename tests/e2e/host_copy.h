// SPDX-License-Identifier: Apache-2.0
//
// A copy of a tensor's bytes in host memory, wherever the tensor is. For tests:
// slow, and any failure ends the process.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/driver.h"
#include "leat/client.h"

namespace leat {

class HostCopy {
 public:
  // Returns the tensor's own bytes if they are in host memory, else a copy in
  // `buffer`.
  static std::span<const std::byte> Of(const Tensor& tensor,
                                       std::vector<std::byte>* buffer) {
    if (tensor.device < 0) return {tensor.data, tensor.bytes};
    static HostCopy copy(tensor.device);
    const cuda::Driver& driver = *copy.driver_;
    const cuda::RelaxedCapture relaxed(driver);
    buffer->resize(tensor.bytes);
    Check(driver, driver.CtxSetCurrent(copy.context_), "cuCtxSetCurrent");
    Check(driver,
          driver.MemcpyDtoHAsync(buffer->data(),
                                 reinterpret_cast<cuda::DevicePtr>(tensor.data),
                                 tensor.bytes, copy.stream_),
          "cuMemcpyDtoHAsync");
    Check(driver, driver.StreamSynchronize(copy.stream_),
          "cuStreamSynchronize");
    return *buffer;
  }

  // Returns a stream whose capture into a graph begins here; the caller ends
  // it.
  static cuda::Stream Captured(int ordinal) {
    const HostCopy copy(ordinal);
    void* const library = dlopen(copy.driver_->path.c_str(), RTLD_NOW);
    const auto begin =
        reinterpret_cast<cuda::Result (*)(cuda::Stream, cuda::CaptureMode)>(
            dlsym(library, "cuStreamBeginCapture_v2"));
    Check(*copy.driver_, begin(copy.stream_, cuda::CaptureMode::kGlobal),
          "cuStreamBeginCapture");
    return copy.stream_;
  }

 private:
  explicit HostCopy(int ordinal) {
    auto driver = cuda::LoadDriver(cuda::LibrarySearch::FromEnvironment());
    if (!driver.ok()) Fail(driver.status());
    driver_ = *driver;
    const cuda::RelaxedCapture relaxed(*driver_);
    cuda::Device device = 0;
    Check(*driver_, driver_->DeviceGet(&device, ordinal), "cuDeviceGet");
    Check(*driver_, driver_->DevicePrimaryCtxRetain(&context_, device),
          "cuDevicePrimaryCtxRetain");
    Check(*driver_, driver_->CtxSetCurrent(context_), "cuCtxSetCurrent");
    Check(*driver_, driver_->StreamCreate(&stream_, cuda::kStreamNonBlocking),
          "cuStreamCreate");
  }
  static void Check(const cuda::Driver& driver, cuda::Result result,
                    const char* what) {
    const absl::Status status = cuda::Check(driver, result, what);
    if (!status.ok()) Fail(status);
  }
  [[noreturn]] static void Fail(const absl::Status& status) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::exit(3);
  }

  std::shared_ptr<const cuda::Driver> driver_;
  cuda::Context context_ = nullptr;
  cuda::Stream stream_ = nullptr;
};

}  // namespace leat
