// SPDX-License-Identifier: Apache-2.0
//
// The platform of builds with nvcc: NVIDIA's GPUs, through the driver, and
// nvJPEG.
#include "worker/gpu/device/platform.h"

#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "cuda/driver.h"
#include "cuda/nvjpeg.h"
#include "worker/gpu/cuda/device.h"

namespace leat::worker {
namespace {

class CudaPlatform final : public Platform {
 public:
  CudaPlatform(std::shared_ptr<const cuda::Driver> driver,
               std::shared_ptr<const cuda::Nvjpeg> nvjpeg, int num_devices)
      : driver_(std::move(driver)),
        nvjpeg_(std::move(nvjpeg)),
        num_devices_(num_devices) {}

  int num_devices() const override { return num_devices_; }
  absl::StatusOr<std::shared_ptr<const Device>> Open(int index) override {
    return CudaDevice::Open(driver_, nvjpeg_, index);
  }

 private:
  const std::shared_ptr<const cuda::Driver> driver_;
  const std::shared_ptr<const cuda::Nvjpeg> nvjpeg_;  // nullptr: not installed
  const int num_devices_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Platform>> OpenPlatform() {
  const auto search = cuda::LibrarySearch::FromEnvironment();
  ASSIGN_OR_RETURN(std::shared_ptr<const cuda::Driver> driver,
                   cuda::LoadDriver(search));
  const cuda::Result init = driver->Init(0);
  absl::Status begun = cuda::Check(*driver, init, "cuInit");
  if (init == cuda::Result::kNoDevice)
    begun =
        Annotate(begun,
                 "the driver shows this process no GPU (CUDA_VISIBLE_DEVICES "
                 "hides them, or a GPU in MIG mode has no compute instance)");
  RETURN_IF_ERROR(begun);
  int count = 0;
  RETURN_IF_ERROR(
      cuda::Check(*driver, driver->DeviceGetCount(&count), "cuDeviceGetCount"));
  std::shared_ptr<const cuda::Nvjpeg> nvjpeg;
  if (auto loaded = cuda::LoadNvjpeg(search); loaded.ok())
    nvjpeg = *std::move(loaded);
  else if (count > 0)
    LOG_WARN("gpu.no_nvjpeg error=\"{}\" note=\"class exact only\"",
             Message(loaded.status()));
  return std::make_unique<CudaPlatform>(std::move(driver), std::move(nvjpeg),
                                        count);
}

}  // namespace leat::worker
