// SPDX-License-Identifier: Apache-2.0
//
// BufferPool: memory for the payloads of row groups.
//
// Buffers come in size classes (four to each doubling, from 64 KiB) and are
// kept when they come back, so that a steady load allocates nothing. The bytes
// of all buffers, lent or kept, stay within one limit: kept ones of other
// classes are freed first.
//
// A buffer is had in two steps. Reserve books its bytes, and takes a kept
// buffer where there is one; it allocates and frees nothing, so it may be
// called with a lock held. Allocate gives the others their memory, which may
// take long (page-locked memory takes milliseconds), without any lock.
//
// Thread safety: Reserve from any thread. A buffer may be dropped on any thread
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

#include "absl/status/status.h"
#include "core/mutex.h"
#include "worker/compute/wake_signal.h"

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

  // Returns as many bytes as were asked for; none before a buffer without
  // memory has been given some.
  std::span<std::byte> bytes() const { return bytes_; }
  bool has_memory() const { return bytes_.data() != nullptr; }
  // Gives a reserved buffer its memory, and frees what made room for it; where
  // there is none of the pool's kind, the fallback's. May block.
  // kResourceExhausted: there is none of either kind; the buffer stays as it
  // was.
  absl::Status Allocate();

 private:
  friend class BufferPool;
  struct Slot;
  struct PoolState;
  void Release();

  std::shared_ptr<PoolState> pool_;
  Slot* slot_ = nullptr;
  size_t wanted_ = 0;
  std::span<std::byte> bytes_;
};

class BufferPool {
 public:
  // `wake` is notified whenever a buffer comes back. Memory is `memory`'s, and
  // `fallback`'s where that has none left (null: ordinary memory). Both live as
  // long as a buffer does.
  BufferPool(size_t limit_bytes, std::shared_ptr<WakeSignal> wake,
             std::shared_ptr<BufferMemory> memory = nullptr,
             std::shared_ptr<BufferMemory> fallback = nullptr);
  ~BufferPool();

  // A buffer, perhaps without memory so far (has_memory). nullopt: more than
  // `limit - reserve` bytes would be lent.
  std::optional<PooledBuffer> Reserve(size_t bytes, size_t reserve = 0);
  // Whether Reserve would succeed, were no other thread to reserve.
  bool CanReserve(size_t bytes, size_t reserve = 0) const;

  size_t limit_bytes() const;
  size_t bytes_in_use() const;
  uint64_t buffers_in_use() const;
  uint64_t buffers_total() const;  // reserved, lent and kept
  uint64_t allocations_total() const;

  // Bytes of the class that holds `bytes`.
  static size_t ClassBytes(size_t bytes);

 private:
  std::shared_ptr<PooledBuffer::PoolState> state_;
};

}  // namespace leat::worker
