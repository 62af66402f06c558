// SPDX-License-Identifier: Apache-2.0
//
// Slots: a GPU's slots. At startup they allocate one piece of the device's
// memory, and a piece of pinned memory each. A slot that is refused pinned
// memory uses ordinary memory: the GPU copies it through the driver's own
// buffer, so the slot is slower and its bytes are the same. Later only decoders
// allocate more, within a bound.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/gpu_worker.h"
#include "worker/gpu/device/device.h"
#include "worker/gpu/resources/slot.h"

namespace leat::worker {

class Slots {
 public:
  // `device` outlives the slots. `decodes`: they have decoders. REQUIRES: if
  // so, the device has a decoder_class(). Errors: device/error.h.
  static absl::StatusOr<std::unique_ptr<Slots>> Create(const GpuConfig& config,
                                                       const Device* device,
                                                       bool decodes);
  // Waits until their queues are empty.
  ~Slots();

  std::vector<Slot*> all() const;
  // The bytes held now, including decoders, and the most ever held.
  // Thread-safe.
  uint64_t device_bytes() const;
  uint64_t most_device_bytes() const { return most_device_bytes_; }

 private:
  Slots(const Device* device, bool decodes)
      : device_(*device), decodes_(decodes) {}
  absl::Status Allocate(const GpuConfig& config);
  absl::Status AllocateHost(uint64_t count, uint64_t bytes);
  absl::Status Equip(Slot* slot, const GpuConfig& config);

  struct HostMemory {
    std::byte* memory = nullptr;
    bool pinned = false;
  };

  const Device& device_;
  const bool decodes_;
  std::vector<HostMemory> host_;  // per slot
  DeviceAddress memory_;
  uint64_t own_bytes_ = 0, most_device_bytes_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace leat::worker
