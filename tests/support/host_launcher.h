// SPDX-License-Identifier: Apache-2.0
//
// LaunchOnHost: runs our kernels on the host, with the same bodies as on the
// device, and grid and block as loops. Slow; for tests and for the fake driver.
#pragma once

#include "worker/gpu/layout/launch_config.h"

namespace leat::worker {

// True if there is a kernel of that name.
bool IsHostKernel(const char* kernel);

// Runs a kernel to its end on the calling thread. `params` as for
// cuLaunchKernel: the address of each parameter. Addresses of device memory
// must be valid on the host. Thread-safe. Returns false if there is no kernel
// of that name; nothing was run.
bool LaunchOnHost(const char* kernel, const LaunchConfig& config,
                  void** params);

}  // namespace leat::worker
