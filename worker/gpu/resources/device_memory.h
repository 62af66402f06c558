// SPDX-License-Identifier: Apache-2.0
//
// Memory of our GPUs that consumers share, passed as a file descriptor.
#pragma once

#include <memory>
#include <vector>

#include "worker/gpu/device/device.h"
#include "worker/shared_memory/device_importer.h"

namespace leat::worker {

// The importer refuses memory of GPUs that cannot map it, but still page-locks
// host memory. REQUIRES: at least one GPU.
absl::StatusOr<std::unique_ptr<DeviceImporter>> ImportDeviceMemory(
    std::vector<std::shared_ptr<const Device>> gpus);

}  // namespace leat::worker
