// SPDX-License-Identifier: Apache-2.0
//
// What GPUs did in an interval, for a worker's statistics.
#pragma once

#include <vector>

#include "leat/v1/types.pb.h"
#include "worker/compute/gpu_worker.h"
#include "worker/session/capacity.h"

namespace leat::worker {

// What they did from `before` to `now`, which is `seconds` later, also into
// `stats`. GPUs that `before` lacks had done nothing.
Capacity::Devices AddDeviceStats(const std::vector<GpuStats>& before,
                                 const std::vector<GpuStats>& now,
                                 double seconds, v1::WorkerStats* stats);

}  // namespace leat::worker
