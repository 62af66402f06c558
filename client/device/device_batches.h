// SPDX-License-Identifier: Apache-2.0
//
// DeviceBatches lets an iterator have its batches in a GPU's memory: it makes
// that memory, and copies the rows that did not arrive there directly.
//
// A step's memory is a DeviceMemory. A worker on the same GPU writes rows into
// the device's part; all other rows arrive in the host's part. When every row
// is there, Upload copies the latter, one copy per run of adjacent rows.
//
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/batch/batch_memory.h"
#include "client/batch/step.h"
#include "client/device/gpu.h"
#include "client/device/uploader.h"

namespace leat::client {

class DeviceBatches {
 public:
  // kFailedPrecondition: no driver, no such device (names the reason).
  static absl::StatusOr<std::unique_ptr<DeviceBatches>> Open(int ordinal);
  static absl::StatusOr<std::unique_ptr<DeviceBatches>> Open(
      std::shared_ptr<const Gpu> gpu);

  const Gpu& gpu() const { return *gpu_; }
  MemoryMaker maker() const;
  // Returns the copies for a step that has all its rows.
  static std::vector<Uploader::Copy> CopiesOf(const Step& step);
  // Completes a step that has all its rows on the device. Calls `done` once:
  // before returning if nothing is to be copied, otherwise on a thread of this
  // object; the step's memory has to live until then.
  void Upload(const Step& step, std::function<void(const absl::Status&)> done);
  // No `done` runs once this has returned. Idempotent.
  void Stop() { uploader_->Stop(); }

 private:
  DeviceBatches(std::shared_ptr<const Gpu> gpu,
                std::unique_ptr<Uploader> uploader)
      : gpu_(std::move(gpu)), uploader_(std::move(uploader)) {}

  const std::shared_ptr<const Gpu> gpu_;
  const std::unique_ptr<Uploader> uploader_;
};

}  // namespace leat::client
