// SPDX-License-Identifier: Apache-2.0
//
// Support for Arrow in this folder: bounded memory, and errors without
// exceptions. Only its .cc files include it.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "arrow/memory_pool.h"
#include "parquet/properties.h"
#include "worker/source/parquet/arrow/library.h"

namespace leat::worker {

// Thrown and caught in this folder.
class ParquetFailure : public std::exception {
 public:
  ParquetFailure(ParquetFault fault, std::string text)
      : fault_(fault), text_(std::move(text)) {}
  ParquetFault fault() const { return fault_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  ParquetFault fault_;
  std::string text_;
};

[[noreturn]] void ThrowMalformed(std::string text);
[[noreturn]] void ThrowTooLarge(std::string text);

// Converts the exception that is being handled. REQUIRES: in a catch block.
ParquetError CaughtError();

// Plain memory, at most `max_bytes` at a time. Not thread-safe; outlives its
// buffers.
class BoundedPool final : public arrow::MemoryPool {
 public:
  explicit BoundedPool(uint64_t max_bytes)
      : max_bytes_(static_cast<int64_t>(max_bytes)) {}
  using arrow::MemoryPool::Allocate;
  using arrow::MemoryPool::Free;
  using arrow::MemoryPool::Reallocate;
  arrow::Status Allocate(int64_t size, int64_t alignment,
                         uint8_t** out) override;
  arrow::Status Reallocate(int64_t old_size, int64_t new_size,
                           int64_t alignment, uint8_t** at) override;
  void Free(uint8_t* buffer, int64_t size, int64_t alignment) override;
  int64_t bytes_allocated() const override { return used_; }
  int64_t total_bytes_allocated() const override { return total_; }
  int64_t num_allocations() const override { return allocations_; }
  std::string backend_name() const override { return "leat"; }

 private:
  const int64_t max_bytes_;
  int64_t used_ = 0, total_ = 0, allocations_ = 0;
};

// Returns properties by which checksums of pages are checked if a file has
// them.
parquet::ReaderProperties PropertiesFor(arrow::MemoryPool* pool);

// Returns `bytes` bytes of the input. Throws.
std::shared_ptr<arrow::Buffer> ReadInput(const ParquetInput& input,
                                         uint64_t offset, uint64_t bytes,
                                         arrow::MemoryPool* pool);

}  // namespace leat::worker
