// SPDX-License-Identifier: Apache-2.0
//
// Slots: a GPU's slots, cut from one piece of pinned memory and one of the
// device's at start. Later only nvJPEG takes more, within a bound.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/gpu/gpu.h"
#include "worker/gpu/nvjpeg_slot.h"
#include "worker/gpu/slot.h"
#include "worker/gpu_worker.h"

namespace leat::worker {

class Slots {
 public:
  // Both outlive the slots; `nvjpeg` may be null. Errors: Gpu's.
  static absl::StatusOr<std::unique_ptr<Slots>> Create(
      const GpuConfig& config, const Gpu* gpu, const NvjpegDevice* nvjpeg);
  // Waits for what is on their streams.
  ~Slots();

  std::vector<Slot*> all();
  // Held now, with what nvJPEG has; and never more than. Thread-safe.
  uint64_t device_bytes() const;
  uint64_t most_device_bytes() const { return most_device_bytes_; }

 private:
  explicit Slots(const Gpu* gpu) : gpu_(*gpu) {}
  absl::Status Allocate(const GpuConfig& config, bool nvjpeg);
  absl::Status Equip(Slot* slot, const NvjpegDevice* nvjpeg,
                     uint64_t nvjpeg_bytes);

  const Gpu& gpu_;
  void* pinned_ = nullptr;
  cuda::DevicePtr device_ = 0;
  uint64_t own_bytes_ = 0, most_device_bytes_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace leat::worker
