// SPDX-License-Identifier: Apache-2.0
//
// BatchMemory: one piece of memory for a batch, by itself or as a worker on
// this host sees it: an id, and a descriptor by which it can be shared
// (leat.v1.ShareMemory). Immutable but for what is in it; of two writers or a
// writer and a reader of the same bytes the owner takes care.
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

  uint64_t id() const { return id_; }  // of this process, never used again
  virtual Kind kind() const { return Kind::kHost; }
  // An address of this process, or of the device.
  virtual std::byte* data() const = 0;
  // The memory as a file, of exactly mapped_bytes(); -1: cannot be shared.
  virtual int fd() const { return -1; }
  virtual size_t mapped_bytes() const = 0;
  virtual std::string device_uuid() const { return {}; }  // of kDevice
  // For kDevice this is memory of this host beside it, where rows that do not
  // come from that device are put first.
  virtual std::shared_ptr<BatchMemory> host_part() const { return nullptr; }

  // Writes `bytes` at `offset`. On any thread; of disjoint places at once.
  virtual void Write(size_t offset, std::span<const std::byte> bytes);
  // Copies what `from`, of the same kind, has at the same place.
  virtual void CopyFrom(const BatchMemory& from, size_t offset, size_t bytes);
  // Whether memory that was given back can be another batch's: not while a
  // stream of the device works on it, never after an error, nor where better
  // memory can be had by then. kKept: never, and it may not be freed either,
  // since a graph that was captured with it may read it again.
  enum class Reuse { kNow, kLater, kNever, kKept };
  virtual Reuse reuse() { return Reuse::kNow; }
  // For memory that said kLater: has `ring` called once, on any thread, when
  // the device has finished with it. A device that has failed may call nobody,
  // so who waits looks again after a while. `ring` must not block, nor call the
  // device. Does not wait. REQUIRES: as for reuse.
  virtual void RingWhenFree(std::function<void()> ring) { ring = nullptr; }

 protected:
  BatchMemory();

 private:
  const uint64_t id_;
};

// Makes memory of at least so many bytes. kResourceExhausted: there is none.
using MemoryMaker =
    std::function<absl::StatusOr<std::shared_ptr<BatchMemory>>(size_t bytes)>;

// Pieces of memory with a descriptor that a process has at most: a trainer may
// hold more batches than the process may have descriptors.
inline constexpr int kMaxShareable = 256;

// Memory of this host, faulted in: a sealed memfd; beyond kMaxShareable, and
// where the system gives none, private memory, which cannot be shared.
absl::StatusOr<std::shared_ptr<BatchMemory>> MakeHostMemory(size_t bytes);
// The latter, whatever the system gives.
absl::StatusOr<std::shared_ptr<BatchMemory>> MakePrivateMemory(size_t bytes);

}  // namespace leat::client
