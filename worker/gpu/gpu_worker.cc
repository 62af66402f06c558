// SPDX-License-Identifier: Apache-2.0
#include "worker/compute/gpu_worker.h"

#include <utility>

#include "worker/gpu/device/platform.h"
#include "worker/gpu/gpus.h"

namespace leat::worker {

absl::StatusOr<std::unique_ptr<GpuWorker>> GpuWorker::Open(
    const GpuConfig& config, const ImageLimits& limits,
    std::shared_ptr<WakeSignal> wake,
    std::function<void(const absl::Status&)> on_fatal) {
  return OpenGpus(OpenPlatform, config, limits, std::move(wake),
                  std::move(on_fatal));
}

}  // namespace leat::worker
