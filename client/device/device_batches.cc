// SPDX-License-Identifier: Apache-2.0
#include "client/device/device_batches.h"

#include <utility>

#include "client/device/device_memory.h"
#include "core/status.h"

namespace leat::client {

absl::StatusOr<std::unique_ptr<DeviceBatches>> DeviceBatches::Open(
    int ordinal) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Gpu> gpu, Gpu::Open(ordinal));
  return Open(std::move(gpu));
}

absl::StatusOr<std::unique_ptr<DeviceBatches>> DeviceBatches::Open(
    std::shared_ptr<const Gpu> gpu) {
  absl::StatusOr<std::unique_ptr<Uploader>> uploader = Uploader::Create(gpu);
  if (!uploader.ok())
    return FailedPrecondition("device {}: {}", gpu->ordinal(),
                              Message(uploader.status()));
  return std::unique_ptr<DeviceBatches>(
      new DeviceBatches(std::move(gpu), *std::move(uploader)));
}

MemoryMaker DeviceBatches::maker() const {
  return [gpu = gpu_](size_t bytes) { return DeviceMemory::Make(gpu, bytes); };
}

std::vector<Uploader::Copy> DeviceBatches::CopiesOf(const Step& step) {
  const auto& memory =
      static_cast<const DeviceMemory&>(*step.memory->buffer.memory());
  std::vector<Uploader::Copy> copies;
  const std::byte* const from = memory.host_part()->data();
  for (size_t i = 0; i < step.rows.size(); ++i) {
    if (step.rows[i].on_device) continue;
    size_t end = i + 1;
    while (end < step.rows.size() && !step.rows[end].on_device) ++end;
    for (const BatchLayout::Part& part : step.layout->parts) {
      const size_t offset = part.offset + i * part.row_bytes;
      copies.push_back(
          {from + offset, memory.data() + offset, (end - i) * part.row_bytes});
    }
    i = end;
  }
  return copies;
}

void DeviceBatches::Upload(const Step& step,
                           std::function<void(const absl::Status&)> done) {
  const auto& memory =
      static_cast<const DeviceMemory&>(*step.memory->buffer.memory());
  const absl::Status moved = memory.status();
  std::vector<Uploader::Copy> copies = CopiesOf(step);
  if (!moved.ok() || copies.empty()) return done(moved);
  uploader_->Add({std::move(copies), std::move(done)});
}

}  // namespace leat::client
