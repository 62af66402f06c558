// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/resources/device_memory.h"

#include <utility>

#include "core/status.h"
#include "worker/gpu/resources/pinned_memory.h"

namespace leat::worker {
namespace {

class DeviceMemory final : public SharedMemory {
 public:
  // `memory` belongs to `gpu`.
  DeviceMemory(std::shared_ptr<const Device> gpu,
               std::unique_ptr<MappedMemory> memory,
               const v1::ShareMemory& share)
      : gpu_(std::move(gpu)),
        memory_(std::move(memory)),
        rows_(share.rows()),
        field_offsets_(share.field_offsets().begin(),
                       share.field_offsets().end()) {}

  std::byte* base() const override {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a device's address.
    return reinterpret_cast<std::byte*>(memory_->address().number());
  }
  int device() const override { return gpu_->info().index; }
  uint32_t rows() const override { return rows_; }
  std::span<const uint64_t> field_offsets() const override {
    return field_offsets_;
  }

 private:
  const std::shared_ptr<const Device> gpu_;
  // Groups that write to it have ended when it is dropped.
  const std::unique_ptr<MappedMemory> memory_;
  const uint32_t rows_;
  const std::vector<uint64_t> field_offsets_;
};

class Importer final : public DeviceImporter {
 public:
  explicit Importer(std::vector<std::shared_ptr<const Device>> gpus)
      : gpus_(std::move(gpus)), pinner_(gpus_.front()) {}

  const absl::Status& started() const { return pinner_.started(); }

  std::vector<std::string> uuids() const override {
    std::vector<std::string> uuids;
    for (const auto& gpu : gpus_)
      if (gpu->imports()) uuids.push_back(gpu->info().uuid);
    return uuids;
  }
  absl::StatusOr<std::shared_ptr<const SharedMemory>> Import(
      int fd, const v1::ShareMemory& share) override {
    for (const auto& gpu : gpus_) {
      if (!gpu->imports() || gpu->info().uuid != share.device_uuid()) continue;
      ASSIGN_OR_RETURN(auto memory, gpu->Import(fd, share.mapped_bytes()));
      return std::make_shared<DeviceMemory>(gpu, std::move(memory), share);
    }
    return NotFound("no GPU {} here that maps other processes' memory",
                    share.device_uuid());
  }
  std::shared_ptr<const SharedMemory> Pin(
      std::shared_ptr<const SharedMemory> memory,
      uint64_t mapped_bytes) override {
    return pinner_.Pin(std::move(memory), mapped_bytes);
  }

 private:
  const std::vector<std::shared_ptr<const Device>> gpus_;
  SharedPinner pinner_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceImporter>> ImportDeviceMemory(
    std::vector<std::shared_ptr<const Device>> gpus) {
  auto importer = std::make_unique<Importer>(std::move(gpus));
  RETURN_IF_ERROR(importer->started());
  return importer;
}

}  // namespace leat::worker
