// SPDX-License-Identifier: Apache-2.0
//
// Platform: the devices of one maker on this machine.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "worker/gpu/device/device.h"

namespace leat::worker {

class Platform {
 public:
  virtual ~Platform() = default;
  virtual int num_devices() const = 0;
  // Opens a device, with our kernels loaded, and makes it current on the
  // calling thread. The device may outlive the platform. REQUIRES: 0 ≤ index <
  // num_devices().
  virtual absl::StatusOr<std::shared_ptr<const Device>> Open(int index) = 0;
};

// Returns the platform that this build was made for. Errors: this machine has
// none (says why). A folder beside this one implements it, chosen by CMake.
absl::StatusOr<std::unique_ptr<Platform>> OpenPlatform();

}  // namespace leat::worker
