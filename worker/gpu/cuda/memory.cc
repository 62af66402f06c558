// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/cuda/memory.h"

#include "core/status.h"

namespace leat::worker {

absl::StatusOr<std::unique_ptr<CudaMemory>> CudaMemory::Map(
    const CudaDevice& device, int fd, uint64_t bytes) {
  RETURN_IF_ERROR(device.MakeCurrent());
  std::unique_ptr<CudaMemory> memory(new CudaMemory(device, bytes));
  const absl::Status status = memory->MapAll(fd);
  if (status.ok()) return memory;
  return InvalidArgument("GPU {}: {} bytes of a consumer's: {}",
                         device.info().index, bytes, Message(status));
}

CudaMemory::~CudaMemory() {
  const cuda::Driver& d = device_.driver();
  (void)device_.MakeCurrent();
  if (mapped_) device_.Released(d.MemUnmap(address_, bytes_), "cuMemUnmap");
  if (address_ != 0)
    device_.Released(d.MemAddressFree(address_, bytes_), "cuMemAddressFree");
  if (handle_ != 0) device_.Released(d.MemRelease(handle_), "cuMemRelease");
}

absl::Status CudaMemory::MapAll(int fd) {
  const cuda::Driver& d = device_.driver();
  void* const as_handle = cuda::AsPointer(static_cast<uint64_t>(fd));
  RETURN_IF_ERROR(device_.Check(
      d.MemImportFromShareableHandle(&handle_, as_handle,
                                     cuda::HandleType::kPosixFileDescriptor),
      "cuMemImportFromShareableHandle"));
  RETURN_IF_ERROR(CheckSize());
  RETURN_IF_ERROR(device_.Check(d.MemAddressReserve(&address_, bytes_, 0, 0, 0),
                                "cuMemAddressReserve"));
  RETURN_IF_ERROR(
      device_.Check(d.MemMap(address_, bytes_, 0, handle_, 0), "cuMemMap"));
  mapped_ = true;
  const cuda::AccessDescription access{
      .location = {.type = cuda::LocationType::kDevice,
                   .id = device_.info().index}};
  return device_.Check(d.MemSetAccess(address_, bytes_, &access, 1),
                       "cuMemSetAccess");
}

// A consumer with another driver, or in another slice of the GPU, may use
// another granularity.
absl::Status CudaMemory::CheckSize() const {
  const cuda::Driver& d = device_.driver();
  cuda::AllocationProperties properties;
  RETURN_IF_ERROR(device_.Check(
      d.MemGetAllocationPropertiesFromHandle(&properties, handle_),
      "cuMemGetAllocationPropertiesFromHandle"));
  properties.location.id = device_.info().index;
  size_t unit = 0;
  RETURN_IF_ERROR(
      device_.Check(d.MemGetAllocationGranularity(&unit, &properties,
                                                  cuda::Granularity::kMinimum),
                    "cuMemGetAllocationGranularity"));
  if (unit == 0 || bytes_ % unit == 0) return absl::OkStatus();
  return InvalidArgument("not a multiple of {} bytes, as this GPU maps them",
                         unit);
}

}  // namespace leat::worker
