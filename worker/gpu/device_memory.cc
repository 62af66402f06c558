// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/device_memory.h"

#include <utility>

#include "core/status.h"
#include "worker/gpu/pinned_memory.h"

namespace leat::worker {
namespace {

using cuda::DevicePtr;

class DeviceMemory final : public LentMemory {
 public:
  DeviceMemory(std::shared_ptr<const Gpu> gpu, const v1::LendMemory& lend)
      : gpu_(std::move(gpu)),
        bytes_(lend.mapped_bytes()),
        rows_(lend.rows()),
        field_offsets_(lend.field_offsets().begin(),
                       lend.field_offsets().end()) {}
  // Groups that write to it are over; a failure means that the GPU is lost.
  ~DeviceMemory() override {
    const cuda::Driver& d = gpu_->driver();
    (void)gpu_->MakeCurrent();
    if (mapped_) d.MemUnmap(address_, bytes_);
    if (address_ != 0) d.MemAddressFree(address_, bytes_);
    if (handle_ != 0) d.MemRelease(handle_);
  }

  absl::Status Map(int fd) {
    const cuda::Driver& d = gpu_->driver();
    RETURN_IF_ERROR(gpu_->MakeCurrent());
    void* const as_handle = cuda::AsPointer(static_cast<uint64_t>(fd));
    absl::Status status = gpu_->Check(
        d.MemImportFromShareableHandle(&handle_, as_handle,
                                       cuda::HandleType::kPosixFileDescriptor),
        "cuMemImportFromShareableHandle");
    if (status.ok()) status = CheckSize();
    if (status.ok())
      status = gpu_->Check(d.MemAddressReserve(&address_, bytes_, 0, 0, 0),
                           "cuMemAddressReserve");
    if (status.ok())
      status =
          gpu_->Check(d.MemMap(address_, bytes_, 0, handle_, 0), "cuMemMap");
    mapped_ = status.ok();
    const cuda::AccessDescription access{
        .location = {.type = cuda::LocationType::kDevice,
                     .id = gpu_->info().index}};
    if (status.ok())
      status = gpu_->Check(d.MemSetAccess(address_, bytes_, &access, 1),
                           "cuMemSetAccess");
    if (status.ok()) return status;
    return InvalidArgument("GPU {}: {} bytes of a consumer's: {}",
                           gpu_->info().index, bytes_, Message(status));
  }

  // A consumer with another driver, or in another slice of the GPU, may count
  // in other units.
  absl::Status CheckSize() const {
    const cuda::Driver& d = gpu_->driver();
    cuda::AllocationProperties properties;
    RETURN_IF_ERROR(gpu_->Check(
        d.MemGetAllocationPropertiesFromHandle(&properties, handle_),
        "cuMemGetAllocationPropertiesFromHandle"));
    properties.location.id = gpu_->info().index;
    size_t unit = 0;
    RETURN_IF_ERROR(
        gpu_->Check(d.MemGetAllocationGranularity(&unit, &properties,
                                                  cuda::Granularity::kMinimum),
                    "cuMemGetAllocationGranularity"));
    if (unit == 0 || bytes_ % unit == 0) return absl::OkStatus();
    return InvalidArgument("not a multiple of {} bytes, as this GPU maps them",
                           unit);
  }

  std::byte* base() const override {
    return static_cast<std::byte*>(cuda::AsPointer(address_));
  }
  int device() const override { return gpu_->info().index; }
  uint32_t rows() const override { return rows_; }
  std::span<const uint64_t> field_offsets() const override {
    return field_offsets_;
  }

 private:
  const std::shared_ptr<const Gpu> gpu_;
  const uint64_t bytes_;
  const uint32_t rows_;
  const std::vector<uint64_t> field_offsets_;
  cuda::AllocationHandle handle_ = 0;
  DevicePtr address_ = 0;
  bool mapped_ = false;
};

class Importer final : public DeviceImporter {
 public:
  explicit Importer(std::vector<std::shared_ptr<const Gpu>> gpus)
      : gpus_(std::move(gpus)), pinner_(gpus_.front()) {}

  const absl::Status& started() const { return pinner_.started(); }

  std::vector<std::string> uuids() const override {
    std::vector<std::string> uuids;
    for (const auto& gpu : gpus_)
      if (gpu->imports()) uuids.push_back(gpu->info().uuid);
    return uuids;
  }
  absl::StatusOr<std::shared_ptr<const LentMemory>> Import(
      int fd, const v1::LendMemory& lend) override {
    for (const auto& gpu : gpus_) {
      if (!gpu->imports() || gpu->info().uuid != lend.device_uuid()) continue;
      auto memory = std::make_shared<DeviceMemory>(gpu, lend);
      RETURN_IF_ERROR(memory->Map(fd));
      return memory;
    }
    return NotFound("no GPU {} here that maps other processes' memory",
                    lend.device_uuid());
  }
  std::shared_ptr<const LentMemory> Pin(
      std::shared_ptr<const LentMemory> memory,
      uint64_t mapped_bytes) override {
    return pinner_.Pin(std::move(memory), mapped_bytes);
  }

 private:
  const std::vector<std::shared_ptr<const Gpu>> gpus_;
  LentPinner pinner_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceImporter>> ImportDeviceMemory(
    std::vector<std::shared_ptr<const Gpu>> gpus) {
  auto importer = std::make_unique<Importer>(std::move(gpus));
  RETURN_IF_ERROR(importer->started());
  return importer;
}

}  // namespace leat::worker
