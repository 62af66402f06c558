// SPDX-License-Identifier: Apache-2.0
//
// The work of GPUs in an interval, for a worker's statistics.
#pragma once

#include <vector>

#include "leat/v1/types.pb.h"
#include "worker/compute/gpu_worker.h"
#include "worker/session/capacity.h"

namespace leat::worker {

// Returns the work from `before` to `now`, which is `seconds` later, and adds
// it to `stats`. GPUs that `before` lacks had done nothing.
Capacity::Devices AddDeviceStats(const std::vector<GpuStats>& before,
                                 const std::vector<GpuStats>& now,
                                 double seconds, v1::WorkerStats* stats);

}  // namespace leat::worker
