// SPDX-License-Identifier: Apache-2.0
//
// The stand-in of a build without GPU support.
#include "worker/compute/gpu_worker.h"

#include <utility>

#include "core/status.h"

namespace leat::worker {
namespace {

class NoGpu final : public GpuWorker {
 public:
  explicit NoGpu(const ImageLimits& limits) : limits_(limits) {}
  const std::vector<GpuInfo>& devices() const override { return devices_; }
  RowKernelFactory kernels() override { return ImageKernels(limits_); }
  std::vector<DecoderClass> decoder_classes() const override {
    return {DecoderClass::kExact};
  }
  uint64_t group_bytes() const override { return 0; }
  std::shared_ptr<BufferMemory> buffer_memory() override { return nullptr; }
  DeviceImporter* importer() override { return nullptr; }
  std::vector<GpuStats> stats() const override { return {}; }

 private:
  const ImageLimits limits_;
  const std::vector<GpuInfo> devices_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GpuWorker>> GpuWorker::Open(
    const GpuConfig& config, const ImageLimits& limits,
    std::shared_ptr<WakeSignal> /*wake*/,  // NOLINT: the interface's
    std::function<void(const absl::Status&)> /*on_fatal*/) {  // NOLINT
  if (!config.devices.all && !config.devices.indices.empty())
    return FailedPrecondition(
        "--devices {}: this build has no GPU support (it was made without "
        "nvcc): want all or none",
        fmt::join(config.devices.indices, ","));
  return std::make_unique<NoGpu>(limits);
}

}  // namespace leat::worker
