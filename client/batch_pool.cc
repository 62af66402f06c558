// SPDX-License-Identifier: Apache-2.0
#include "client/batch_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/status.h"

namespace leat::client {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;

size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

void FaultIn(std::byte* data, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (madvise(data, RoundUp(bytes, kPage), MADV_POPULATE_WRITE) == 0) return;
#endif
  // Kernels before 5.14.
  for (size_t i = 0; i < bytes; i += kPage)
    *const_cast<volatile std::byte*>(data + i) = std::byte{0};
}

}  // namespace

BatchLayout::BatchLayout(const BatchSchema& schema, uint32_t num_rows)
    : rows(num_rows), row_bytes(schema.row_bytes()) {
  for (const Field& field : schema.fields) {
    parts.push_back({bytes, field.row_bytes});
    bytes += RoundUp(field.row_bytes * rows, kFieldAlignment);
  }
}

BatchPool::Buffer::Buffer(Buffer&& other) noexcept
    : pool_(std::move(other.pool_)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      data_(std::exchange(other.data_, nullptr)) {}

BatchPool::Buffer& BatchPool::Buffer::operator=(Buffer&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(mapping_, other.mapping_);
  std::swap(data_, other.data_);
  return *this;
}

BatchPool::Buffer::~Buffer() {
  if (data_ != nullptr) pool_->Return(mapping_, data_);
}

size_t BatchPool::Buffer::bytes() const {
  return data_ == nullptr ? 0 : pool_->bytes();
}

std::shared_ptr<BatchPool> BatchPool::Create(size_t bytes, size_t max_free) {
  return std::shared_ptr<BatchPool>(new BatchPool(bytes, max_free));
}

BatchPool::BatchPool(size_t bytes, size_t max_free)
    : bytes_(bytes),
      alignment_(bytes >= 2 * kHugePage ? kHugePage : kPage),
      mapped_bytes_(RoundUp(bytes, alignment_) +
                    (alignment_ > kPage ? alignment_ : 0)),
      max_free_(max_free) {}

BatchPool::~BatchPool() {
  for (const Mapping& mapping : free_) munmap(mapping.mapping, mapped_bytes_);
}

absl::StatusOr<BatchPool::Buffer> BatchPool::Take() {
  Buffer buffer;
  {
    MutexLock lock(&mu_);
    if (!free_.empty()) {
      buffer.mapping_ = free_.back().mapping;
      buffer.data_ = free_.back().data;
      free_.pop_back();
      ++in_use_;
    }
  }
  if (buffer.data_ == nullptr) {
    void* mapping = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
      return ResourceExhausted("memory for a batch: {} bytes: {}",
                               mapped_bytes_, strerror(errno));
    const auto address = reinterpret_cast<uintptr_t>(mapping);
    auto* data = reinterpret_cast<std::byte*>(RoundUp(address, alignment_));
    if (alignment_ > kPage)
      madvise(data, RoundUp(bytes_, alignment_), MADV_HUGEPAGE);
    FaultIn(data, bytes_);
    buffer.mapping_ = mapping;
    buffer.data_ = data;
    MutexLock lock(&mu_);
    ++in_use_;
  }
  buffer.pool_ = shared_from_this();
  return buffer;
}

void BatchPool::Return(void* mapping, std::byte* data) {
  {
    MutexLock lock(&mu_);
    --in_use_;
    if (free_.size() < max_free_) {
      free_.push_back({mapping, data});
      return;
    }
  }
  munmap(mapping, mapped_bytes_);
}

size_t BatchPool::in_use() const {
  MutexLock lock(&mu_);
  return in_use_;
}

size_t BatchPool::free() const {
  MutexLock lock(&mu_);
  return free_.size();
}

}  // namespace leat::client
