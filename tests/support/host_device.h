// SPDX-License-Identifier: Apache-2.0
//
// A platform whose devices are the host: host memory, kernels as loops
// (tests/support/host_launcher.h), libjpeg-turbo as decoder. It is for
// tests of code above devices: calls are done when they return, unlike on GPUs;
// tests of that use the fake driver.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "worker/gpu/device/platform.h"
#include "worker/gpu/device/queue.h"

namespace leat::worker {

// Counts the calls on a platform's devices. Thread-safe.
struct HostDeviceStats {
  // Memories, queues and decoders that exist now.
  std::atomic<int> live{0};
  std::atomic<uint64_t> bytes_to_device{0}, copies_to_host{0}, launches{0},
      decoded{0};
};

struct HostDeviceOptions {
  int num_devices = 1;
  bool decodes = true;  // as class nvjpeg: all JPEGs but progressive ones
  std::shared_ptr<HostDeviceStats> stats = std::make_shared<HostDeviceStats>();
};

// Makes a queue without a device. `stats` may be nullptr.
std::unique_ptr<DeviceQueue> MakeHostQueue(
    std::shared_ptr<HostDeviceStats> stats = nullptr);

std::unique_ptr<Platform> MakeHostPlatform(const HostDeviceOptions& options);

}  // namespace leat::worker
