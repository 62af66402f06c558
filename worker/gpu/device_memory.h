// SPDX-License-Identifier: Apache-2.0
//
// Memory of our GPUs that consumers lend: an allocation of CUDA's virtual
// memory management, passed as a file descriptor and mapped into our context.
#pragma once

#include <memory>
#include <vector>

#include "worker/gpu/gpu.h"
#include "worker/plane/device_importer.h"

namespace leat::worker {

// Takes no memory of GPUs that cannot map it, but page-locks the host's all the
// same. REQUIRES: at least one GPU.
absl::StatusOr<std::unique_ptr<DeviceImporter>> ImportDeviceMemory(
    std::vector<std::shared_ptr<const Gpu>> gpus);

}  // namespace leat::worker
