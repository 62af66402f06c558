// SPDX-License-Identifier: Apache-2.0
//
// A platform whose devices are the host: memory of the host, kernels as loops
// (worker/gpu/kernels/host_launcher.h), libjpeg-turbo as decoder. For tests of
// what is built on devices: calls are done when they return, which is not how
// GPUs behave; tests of that use the fake driver.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "worker/gpu/device/platform.h"
#include "worker/gpu/device/queue.h"

namespace leat::worker {

// What was asked of the devices of a platform. Thread-safe.
struct HostDeviceStats {
  // Memories, queues and decoders that are there now.
  std::atomic<int> live{0};
  std::atomic<uint64_t> copies_to_host{0}, launches{0}, decoded{0};
};

struct HostDeviceOptions {
  int num_devices = 1;
  bool decodes = true;  // as class nvjpeg: all JPEGs but progressive ones
  std::shared_ptr<HostDeviceStats> stats = std::make_shared<HostDeviceStats>();
};

// A queue of no device. `stats` may be null.
std::unique_ptr<DeviceQueue> MakeHostQueue(
    std::shared_ptr<HostDeviceStats> stats = nullptr);

std::unique_ptr<Platform> MakeHostPlatform(const HostDeviceOptions& options);

}  // namespace leat::worker
