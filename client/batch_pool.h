// SPDX-License-Identifier: Apache-2.0
//
// BatchPool: reused memory for batches. First touch of fresh memory is ten
// times slower than a copy, so buffers are faulted in once and kept.
//
// A buffer is one mapping; BatchLayout places the fields in it, each at a
// multiple of 64 bytes. A Buffer returns to its pool when it dies, and keeps
// the pool alive until then. BatchPool is thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "core/tensor.h"

namespace leat::client {

inline constexpr size_t kFieldAlignment = 64;

// Where the fields of a batch of `rows` rows are. Immutable.
struct BatchLayout {
  struct Part {
    size_t offset = 0;  // in the buffer
    size_t row_bytes = 0;
  };
  BatchLayout(const BatchSchema& schema, uint32_t rows);

  std::vector<Part> parts;  // one a field
  uint32_t rows = 0;
  size_t row_bytes = 0;  // of all fields
  size_t bytes = 0;      // of the buffer
};

class BatchPool : public std::enable_shared_from_this<BatchPool> {
 public:
  class Buffer {
   public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&& other) noexcept;
    ~Buffer();
    std::byte* data() const { return data_; }  // nullptr: none
    size_t bytes() const;

   private:
    friend class BatchPool;
    std::shared_ptr<BatchPool> pool_;
    void* mapping_ = nullptr;
    std::byte* data_ = nullptr;
  };

  // Buffers of `bytes` > 0; at most `max_free` unused ones are kept.
  static std::shared_ptr<BatchPool> Create(size_t bytes, size_t max_free);
  ~BatchPool();

  // kResourceExhausted: the machine has no such memory (names the size).
  absl::StatusOr<Buffer> Take();

  size_t bytes() const { return bytes_; }
  size_t in_use() const;
  size_t free() const;

 private:
  BatchPool(size_t bytes, size_t max_free);
  void Return(void* mapping, std::byte* data);

  struct Mapping {
    void* mapping;
    std::byte* data;
  };
  const size_t bytes_, alignment_, mapped_bytes_, max_free_;
  mutable Mutex mu_;
  std::vector<Mapping> free_ ABSL_GUARDED_BY(mu_);
  size_t in_use_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace leat::client
