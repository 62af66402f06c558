// SPDX-License-Identifier: Apache-2.0
//
// BufferPool: memory for the payloads of row groups.
//
// Buffers come in size classes (four to each doubling, from 64 KiB) and are
// kept when they come back, so that a steady load allocates nothing. The bytes
// of all buffers, lent or kept, stay within one limit: kept ones of other
// classes are freed first.
//
// Thread safety: Acquire from any thread. A buffer may be dropped on any thread
// and after the pool: dropping takes no lock and calls nothing but
// WakeSignal::Notify, as gRPC demands of release hooks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/mutex.h"
#include "worker/wake_signal.h"

namespace leat::worker {

// Where buffers come from; ordinary memory, or pinned. Thread-safe.
class BufferMemory {
 public:
  virtual ~BufferMemory() = default;
  // Aligned to 64 bytes. nullptr: there is none left.
  virtual std::byte* Allocate(size_t bytes) = 0;
  virtual void Free(std::byte* memory, size_t bytes) = 0;
};

class BufferPool;

// A lent buffer, 64-byte aligned. Goes back to its pool when dropped.
class PooledBuffer {
 public:
  PooledBuffer() = default;
  ~PooledBuffer() { Release(); }
  PooledBuffer(PooledBuffer&& other) noexcept;
  PooledBuffer& operator=(PooledBuffer&& other) noexcept;

  // As many bytes as were asked for.
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  friend class BufferPool;
  struct Slot;
  struct PoolState;
  void Release();

  std::shared_ptr<PoolState> pool_;
  Slot* slot_ = nullptr;
  std::span<std::byte> bytes_;
};

class BufferPool {
 public:
  // `wake` is notified whenever a buffer comes back. `memory` null: ordinary;
  // else it lives as long as a buffer does.
  BufferPool(size_t limit_bytes, std::shared_ptr<WakeSignal> wake,
             std::shared_ptr<BufferMemory> memory = nullptr);
  ~BufferPool();

  // nullopt: more than `limit - reserve` bytes would be lent.
  std::optional<PooledBuffer> Acquire(size_t bytes, size_t reserve = 0);
  // Whether Acquire would succeed, were no other thread to acquire.
  bool CanAcquire(size_t bytes, size_t reserve = 0) const;

  size_t limit_bytes() const;
  size_t bytes_in_use() const;
  uint64_t buffers_in_use() const;
  uint64_t buffers_total() const;  // lent and kept
  uint64_t allocations_total() const;

  // Bytes of the class that holds `bytes`.
  static size_t ClassBytes(size_t bytes);

 private:
  std::shared_ptr<PooledBuffer::PoolState> state_;
};

}  // namespace leat::worker
