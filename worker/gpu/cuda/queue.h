// SPDX-License-Identifier: Apache-2.0
//
// CudaQueue: a queue of a GPU: a CUDA stream and an event on which threads
// sleep.
#pragma once

#include <atomic>
#include <memory>

#include "worker/gpu/cuda/device.h"
#include "worker/gpu/device/queue.h"

namespace leat::worker {

class CudaQueue final : public DeviceQueue {
 public:
  // `device` outlives the queue.
  static absl::StatusOr<std::unique_ptr<CudaQueue>> Create(
      const CudaDevice& device);
  ~CudaQueue() override;

  absl::Status ToDevice(DeviceAddress to, const void* from,
                        size_t bytes) override;
  absl::Status ToHost(void* to, DeviceAddress from, size_t bytes) override;
  absl::Status Fill(DeviceAddress to, uint8_t value, size_t bytes) override;
  absl::Status Launch(KernelId kernel, const LaunchConfig& config,
                      DeviceAddress parameters) override;
  absl::Status Mark() override;
  absl::Status WaitMark() override;
  absl::Status Wait() override;
  absl::StatusOr<std::unique_ptr<ImageDecoder>> MakeDecoder(
      uint64_t most_bytes, const ImageDecoder* beside) override;
  uint64_t pageable_copies() const override { return pageable_copies_; }

  cuda::Stream stream() const { return stream_; }

 private:
  explicit CudaQueue(const CudaDevice& device) : device_(device) {}
  void CountCopy(const void* host, size_t bytes);

  const CudaDevice& device_;
  cuda::Stream stream_ = nullptr;
  cuda::Event mark_ = nullptr;
  std::atomic<uint64_t> pageable_copies_{0};
};

}  // namespace leat::worker
