// SPDX-License-Identifier: Apache-2.0
//
// Runs our kernels on the host: the very bodies that the device runs, with grid
// and block as loops. Slow; for tests and for the fake driver.
#pragma once

#include "worker/gpu/layout/launch_config.h"

namespace leat::worker {

// Whether there is a kernel of that name.
bool IsHostKernel(const char* kernel);

// Runs a kernel to its end on the calling thread. `params` as cuLaunchKernel's:
// the address of each parameter. Addresses of device memory must be the host's.
// Thread-safe. False: no kernel of that name; nothing was run.
bool LaunchOnHost(const char* kernel, const LaunchConfig& config,
                  void** params);

}  // namespace leat::worker
