// SPDX-License-Identifier: Apache-2.0
//
// DeviceBatches: what an iterator needs to have its batches in a GPU's memory:
// the maker of that memory, and the copying of what did not get there by
// itself.
//
// A step's memory is a DeviceMemory. A worker of the same GPU writes rows into
// the device's part; all other rows come into the host's part. When every row
// is there, Upload copies the latter, a run of adjacent rows by one copy.
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
  // What is to be copied of a step that has all its rows.
  static std::vector<Uploader::Copy> CopiesOf(const Step& step);
  // Makes a step that has all its rows whole on the device. `done` is called
  // once: from within if nothing is to be copied, else on a thread of this
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
