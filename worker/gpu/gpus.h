// SPDX-License-Identifier: Apache-2.0
//
// The GPU worker of any platform.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/gpu_worker.h"
#include "worker/gpu/device/platform.h"

namespace leat::worker {

// As GpuWorker::Open. Calls `open_platform` unless no GPU is wanted.
absl::StatusOr<std::unique_ptr<GpuWorker>> OpenGpus(
    const std::function<absl::StatusOr<std::unique_ptr<Platform>>()>&
        open_platform,
    const GpuConfig& config, const ImageLimits& limits,
    std::shared_ptr<WakeSignal> wake,
    std::function<void(const absl::Status&)> on_fatal);

}  // namespace leat::worker
