// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/cuda/queue.h"

#include "core/status.h"
#include "worker/gpu/cuda/nvjpeg_slot.h"
#include "worker/gpu/cuda/pinned_ranges.h"

namespace leat::worker {

absl::StatusOr<std::unique_ptr<CudaQueue>> CudaQueue::Create(
    const CudaDevice& device) {
  const cuda::Driver& d = device.driver();
  std::unique_ptr<CudaQueue> queue(new CudaQueue(device));
  RETURN_IF_ERROR(
      device.Check(d.StreamCreate(&queue->stream_, cuda::kStreamNonBlocking),
                   "cuStreamCreate"));
  RETURN_IF_ERROR(device.Check(
      d.EventCreate(&queue->mark_,
                    cuda::kEventBlockingSync | cuda::kEventDisableTiming),
      "cuEventCreate"));
  return queue;
}

CudaQueue::~CudaQueue() {
  const cuda::Driver& d = device_.driver();
  if (mark_ != nullptr)
    device_.Released(d.EventDestroy(mark_), "cuEventDestroy");
  if (stream_ != nullptr)
    device_.Released(d.StreamDestroy(stream_), "cuStreamDestroy");
}

void CudaQueue::CountCopy(const void* host, size_t bytes) {
  if (!IsPinned(host, bytes)) ++pageable_copies_;
}

absl::Status CudaQueue::ToDevice(DeviceAddress to, const void* from,
                                 size_t bytes) {
  CountCopy(from, bytes);
  return device_.Check(
      device_.driver().MemcpyHtoDAsync(to.number(), from, bytes, stream_),
      "cuMemcpyHtoDAsync");
}

absl::Status CudaQueue::ToHost(void* to, DeviceAddress from, size_t bytes) {
  CountCopy(to, bytes);
  return device_.Check(
      device_.driver().MemcpyDtoHAsync(to, from.number(), bytes, stream_),
      "cuMemcpyDtoHAsync");
}

absl::Status CudaQueue::Fill(DeviceAddress to, uint8_t value, size_t bytes) {
  return device_.Check(
      device_.driver().MemsetD8Async(to.number(), value, bytes, stream_),
      "cuMemsetD8Async");
}

absl::Status CudaQueue::Launch(KernelId kernel, const LaunchConfig& config,
                               DeviceAddress parameters) {
  uint64_t parameter = parameters.number();
  void* all[] = {&parameter};
  return device_.Check(
      device_.driver().LaunchKernel(
          device_.kernel(kernel), config.grid_x, config.grid_y, config.grid_z,
          config.block_x, config.block_y, config.block_z, config.shared_bytes,
          stream_, all, nullptr),
      "cuLaunchKernel");
}

absl::Status CudaQueue::Mark() {
  return device_.Check(device_.driver().EventRecord(mark_, stream_),
                       "cuEventRecord");
}

absl::Status CudaQueue::WaitMark() {
  return device_.Check(device_.driver().EventSynchronize(mark_),
                       "cuEventSynchronize");
}

absl::Status CudaQueue::Wait() { return device_.WaitStream(stream_); }

absl::StatusOr<std::unique_ptr<ImageDecoder>> CudaQueue::MakeDecoder(
    uint64_t most_bytes, const ImageDecoder* beside) {
  return NvjpegSlot::Create(*device_.nvjpeg(), stream_, most_bytes,
                            static_cast<const NvjpegSlot*>(beside));
}

}  // namespace leat::worker
