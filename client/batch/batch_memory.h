// SPDX-License-Identifier: Apache-2.0
//
// BatchMemory: one block of memory for a batch, usable by itself or shared with
// a worker on this host: it has an ID, and a descriptor for sharing
// (leat.v1.ShareMemory). Immutable except for its content; the owner
// synchronises writers and readers of the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace leat::client {

class BatchMemory {
 public:
  enum class Kind { kHost, kDevice };
  virtual ~BatchMemory() = default;
  BatchMemory(const BatchMemory&) = delete;
  BatchMemory& operator=(const BatchMemory&) = delete;

  uint64_t id() const { return id_; }  // unique in this process, never reused
  virtual Kind kind() const { return Kind::kHost; }
  // Returns an address of this process, or of the device.
  virtual std::byte* data() const = 0;
  // Returns the memory as a file of exactly mapped_bytes(); -1: cannot be
  // shared.
  virtual int fd() const { return -1; }
  virtual size_t mapped_bytes() const = 0;
  virtual std::string device_uuid() const { return {}; }  // for kDevice
  // For kDevice, returns the host memory beside it that first receives rows
  // that do not come from that device.
  virtual std::shared_ptr<BatchMemory> host_part() const { return nullptr; }

  // Writes `bytes` at `offset`. Thread-safe for disjoint ranges.
  virtual void Write(size_t offset, std::span<const std::byte> bytes);
  // Copies the bytes at the same offset of `from`, which is of the same kind.
  virtual void CopyFrom(const BatchMemory& from, size_t offset, size_t bytes);
  // Returns whether released memory can be used for another batch: not while a
  // stream of the device works on it, never after an error, nor if better
  // memory is available by then. kKept: never, and it may not be freed either,
  // since a graph that was captured with it may read it again.
  enum class Reuse { kNow, kLater, kNever, kKept };
  virtual Reuse reuse() { return Reuse::kNow; }
  // For memory that returned kLater: arranges that `ring` is called once, on
  // any thread, when the device has finished with it. A failed device may never
  // call it, so the waiting caller has to check again after a while. `ring`
  // must not block, nor call the device. Does not wait. REQUIRES: as for reuse.
  virtual void RingWhenFree(std::function<void()> ring) { ring = nullptr; }

 protected:
  BatchMemory();

 private:
  const uint64_t id_;
};

// Allocates at least `bytes`. kResourceExhausted: there is no such memory.
using MemoryMaker =
    std::function<absl::StatusOr<std::shared_ptr<BatchMemory>>(size_t bytes)>;

// Bound on the shareable blocks per process: a trainer may hold more batches
// than the process may have descriptors.
inline constexpr int kMaxShareable = 256;

// Allocates host memory, faulted in: a sealed memfd; beyond kMaxShareable, and
// if the system refuses one, private memory, which cannot be shared.
absl::StatusOr<std::shared_ptr<BatchMemory>> MakeHostMemory(size_t bytes);
// Always allocates private memory.
absl::StatusOr<std::shared_ptr<BatchMemory>> MakePrivateMemory(size_t bytes);

}  // namespace leat::client
