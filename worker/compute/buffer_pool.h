// SPDX-License-Identifier: Apache-2.0
//
// BufferPool: memory for the payloads of row groups.
//
// Buffers come in size classes (four per doubling, from 64 KiB). They are kept
// when they come back, so a steady load allocates nothing. The bytes of all
// buffers, in use or kept, stay within one limit: kept buffers of other classes
// are freed first.
//
// A buffer is obtained in two steps. Reserve books its bytes and takes a kept
// buffer if there is one; it allocates and frees nothing, so it may be called
// with a lock held. Allocate gives the other buffers their memory, which may
// take long (page-locked memory takes milliseconds), without any lock.
//
// Thread safety: Reserve may be called on any thread. A buffer may be dropped
// on any thread and after the pool: dropping takes no lock and calls only
// WakeSignal::Notify, as gRPC requires of release hooks.
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

// A source of memory for buffers, ordinary or page-locked. Thread-safe.
class BufferMemory {
 public:
  virtual ~BufferMemory() = default;
  // Returns memory aligned to 64 bytes; nullptr if there is none left.
  virtual std::byte* Allocate(size_t bytes) = 0;
  virtual void Free(std::byte* memory, size_t bytes) = 0;
};

class BufferPool;

// A buffer in use, 64-byte aligned. Goes back to its pool when dropped.
class PooledBuffer {
 public:
  PooledBuffer() = default;
  ~PooledBuffer() { Release(); }
  PooledBuffer(PooledBuffer&& other) noexcept;
  PooledBuffer& operator=(PooledBuffer&& other) noexcept;

  // Returns as many bytes as were reserved; none as long as the buffer has no
  // memory.
  std::span<std::byte> bytes() const { return bytes_; }
  bool has_memory() const { return bytes_.data() != nullptr; }
  // Gives a reserved buffer its memory and frees the buffers evicted for it.
  // Takes memory of the fallback when the pool's own is exhausted. May block.
  // kResourceExhausted: both are exhausted; the buffer is unchanged.
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
  // `wake` is notified whenever a buffer comes back. Buffers are allocated from
  // `memory`, or from `fallback` when that is exhausted (nullptr: ordinary
  // memory). Both live as long as any buffer does.
  BufferPool(size_t limit_bytes, std::shared_ptr<WakeSignal> wake,
             std::shared_ptr<BufferMemory> memory = nullptr,
             std::shared_ptr<BufferMemory> fallback = nullptr);
  ~BufferPool();

  // Returns a buffer, perhaps without memory so far (has_memory); nullopt if
  // more than `limit - reserve` bytes would be in use.
  std::optional<PooledBuffer> Reserve(size_t bytes, size_t reserve = 0);
  // True if Reserve would succeed, provided that no other thread reserves.
  bool CanReserve(size_t bytes, size_t reserve = 0) const;

  size_t limit_bytes() const;
  size_t bytes_in_use() const;
  uint64_t buffers_in_use() const;
  uint64_t buffers_total() const;  // reserved, in use and kept
  uint64_t allocations_total() const;

  // Returns the bytes of the class that holds `bytes`.
  static size_t ClassBytes(size_t bytes);

 private:
  std::shared_ptr<PooledBuffer::PoolState> state_;
};

}  // namespace leat::worker
