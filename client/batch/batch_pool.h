// SPDX-License-Identifier: Apache-2.0
//
// BatchPool: reused memory for batches. The first touch of fresh memory is ten
// times slower than a copy, so buffers are faulted in once and kept.
//
// A buffer is one BatchMemory; BatchLayout places the fields in it, each at a
// multiple of 64 bytes. A Buffer returns to its pool when it is destroyed, and
// keeps the pool alive until then. BatchPool is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "client/batch/batch_memory.h"
#include "client/batch/revocable.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "core/tensor/tensor.h"

namespace leat::client {

inline constexpr size_t kFieldAlignment = 64;

// The positions of the fields in a batch of `rows` rows. Immutable.
struct BatchLayout {
  struct Part {
    size_t offset = 0;  // in the buffer
    size_t row_bytes = 0;
  };
  BatchLayout(const BatchSchema& schema, uint32_t rows);

  std::vector<Part> parts;  // one per field
  uint32_t rows = 0;
  size_t row_bytes = 0;  // of all fields
  size_t bytes = 0;      // of the buffer
};

class BatchPool : public std::enable_shared_from_this<BatchPool> {
 public:
  class Buffer {
   public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept = default;
    Buffer& operator=(Buffer&& other) noexcept;
    ~Buffer();
    // Returns nullptr if there is none.
    const std::shared_ptr<BatchMemory>& memory() const { return memory_; }
    std::byte* data() const { return memory_ ? memory_->data() : nullptr; }
    size_t bytes() const { return memory_ ? pool_->bytes() : 0; }

   private:
    friend class BatchPool;
    std::shared_ptr<BatchPool> pool_;
    std::shared_ptr<BatchMemory> memory_;
  };

  // Creates a pool of buffers of `bytes` > 0; it keeps at most `max_free`
  // unused ones.
  static std::shared_ptr<BatchPool> Create(size_t bytes, size_t max_free,
                                           MemoryMaker maker = MakeHostMemory);

  // Returns a buffer. kResourceExhausted: the machine has no such memory (names
  // the size). While devices work on more than max_free unused buffers, it
  // waits for one of them, for at most kMaxReuseWait; then it returns
  // kResourceExhausted too. It also does so when graphs keep more than max_free
  // buffers, whose memory lives as long as the pool.
  static constexpr Duration kMaxReuseWait = std::chrono::seconds(30);
  absl::StatusOr<Buffer> Take();
  // Sets a callback, which may be null, for each time that memory was not kept;
  // it runs on any thread. Once this has returned, the previous callback is not
  // running.
  void SetOnDropped(std::function<void()> dropped);

  size_t bytes() const { return bytes_; }
  size_t in_use() const;
  size_t free() const;
  size_t kept() const;  // for graphs

 private:
  BatchPool(size_t bytes, size_t max_free, MemoryMaker maker);
  void Return(std::shared_ptr<BatchMemory> memory);
  absl::Status TakeFree(std::shared_ptr<BatchMemory>* memory);
  absl::Status CheckKept() const;

  // Rung when memory may have become free. Outlives the pool if a device will
  // ring it.
  class Bell {
   public:
    void Ring();
    uint64_t rings() const;
    // Waits until it has been rung more than `heard` times, or until
    // `deadline`.
    void WaitPast(uint64_t heard, MonotonicTime deadline);

   private:
    mutable Mutex mu_;
    CondVar rung_;
    uint64_t rings_ ABSL_GUARDED_BY(mu_) = 0;
  };
  // The result of a search in the unused buffers.
  struct Found {
    std::shared_ptr<BatchMemory> memory;  // null: none can be taken
    bool wait = false;                    // one of them will be free
    std::vector<std::shared_ptr<BatchMemory>> spoilt;
  };
  Found Look();

  const size_t bytes_, max_free_;
  const MemoryMaker maker_;
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  mutable Mutex mu_;
  std::vector<std::shared_ptr<BatchMemory>> free_ ABSL_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<BatchMemory>> kept_ ABSL_GUARDED_BY(mu_);
  size_t in_use_ ABSL_GUARDED_BY(mu_) = 0;
  Revocable<> dropped_;
};

}  // namespace leat::client
