// SPDX-License-Identifier: Apache-2.0
//
// Page-locked memory for batches, which every GPU writes at full speed: our
// own, and what consumers share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "worker/compute/buffer_pool.h"
#include "worker/compute/row_work.h"
#include "worker/gpu/device/device.h"

namespace leat::worker {

// Thread-safe. Says once in the log that the driver gives none; the pool takes
// ordinary memory then, which the GPU writes by way of the driver's own buffer,
// with the caller waiting.
class PinnedMemory final : public BufferMemory {
 public:
  explicit PinnedMemory(std::shared_ptr<const Device> gpu)
      : gpu_(std::move(gpu)) {}
  std::byte* Allocate(size_t bytes) override;
  void Free(std::byte* memory, size_t bytes) override;

 private:
  const std::shared_ptr<const Device> gpu_;
  std::atomic<bool> said_{false};
};

// Page-locks host memory that consumers share, on a thread of its own: the
// driver takes tens of milliseconds for a batch's, and neither the thread that
// takes all shares waits for that, nor whoever drops a memory last.
//
// Thread-safe. Memories may outlive the object; they are unlocked where they
// are dropped then.
class SharedPinner {
 public:
  // At most so many memories wait to be locked; those beyond are used as they
  // are.
  static constexpr size_t kMaxWaiting = 4096;

  explicit SharedPinner(std::shared_ptr<const Device> gpu);
  // kResourceExhausted: its thread cannot be had; then only destroy it.
  const absl::Status& started() const { return started_; }
  // Those that wait to be unlocked are; those that wait to be locked are not.
  ~SharedPinner();
  // `memory`, whose `mapped_bytes` will be page-locked until the result is
  // dropped, and which is dropped itself after that. It may be used at once:
  // until it is locked, and where the driver refuses (says so in the log), the
  // GPU writes it by way of the driver's own buffer, with the caller waiting.
  std::shared_ptr<const SharedMemory> Pin(
      std::shared_ptr<const SharedMemory> memory, uint64_t mapped_bytes);

 private:
  struct State;
  class Pinned;

  const std::shared_ptr<State> state_;  // shared with the memories
  std::thread thread_;
  absl::Status started_;
};

}  // namespace leat::worker
