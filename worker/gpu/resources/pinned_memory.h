// SPDX-License-Identifier: Apache-2.0
//
// Page-locked memory for batches, which every GPU writes at full speed: our
// own, and the memory that consumers share.
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

// Thread-safe. Logs once that the driver gives none; the pool then uses
// ordinary memory, which the GPU writes through the driver's own buffer, with
// the caller waiting.
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

// Page-locks host memory that consumers share, on its own thread: the driver
// takes tens of milliseconds for a batch's memory, and neither the thread that
// receives all shared memory waits for that, nor the one that drops a memory
// last.
//
// Thread-safe. Memories may outlive the object; they are then unlocked by the
// thread that drops them.
class SharedPinner {
 public:
  // The most memories that wait to be locked; further ones are used unlocked.
  static constexpr size_t kMaxWaiting = 4096;

  explicit SharedPinner(std::shared_ptr<const Device> gpu);
  // kResourceExhausted: its thread cannot be started; then only destroy it.
  const absl::Status& started() const { return started_; }
  // Unlocks memories that wait for that; those that wait to be locked stay
  // unlocked.
  ~SharedPinner();
  // Returns a memory that holds `memory`, and keeps its `mapped_bytes`
  // page-locked until the result is dropped. It may be used at once: until it
  // is locked, and if the driver refuses (this is logged), the GPU writes it
  // through the driver's own buffer, with the caller waiting.
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
