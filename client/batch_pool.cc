// SPDX-License-Identifier: Apache-2.0
#include "client/batch_pool.h"

#include <algorithm>
#include <utility>

#include "core/status.h"

namespace leat::client {
namespace {

constexpr Duration kLookAgain = std::chrono::milliseconds(1);

}  // namespace

BatchLayout::BatchLayout(const BatchSchema& schema, uint32_t num_rows)
    : rows(num_rows), row_bytes(schema.row_bytes()) {
  for (const Field& field : schema.fields) {
    parts.push_back({bytes, field.row_bytes});
    bytes += (field.row_bytes * rows + kFieldAlignment - 1) / kFieldAlignment *
             kFieldAlignment;
  }
}

BatchPool::Buffer& BatchPool::Buffer::operator=(Buffer&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(memory_, other.memory_);
  return *this;
}

BatchPool::Buffer::~Buffer() {
  if (memory_) pool_->Return(std::move(memory_));
}

std::shared_ptr<BatchPool> BatchPool::Create(size_t bytes, size_t max_free,
                                             MemoryMaker maker) {
  return std::shared_ptr<BatchPool>(
      new BatchPool(bytes, max_free, std::move(maker)));
}

BatchPool::BatchPool(size_t bytes, size_t max_free, MemoryMaker maker)
    : bytes_(bytes), max_free_(max_free), maker_(std::move(maker)) {}

// An unused buffer, the newest that can be taken; none of them can: null.
// Those that never can come into `spoilt`.
absl::Status BatchPool::TakeFree(
    std::shared_ptr<BatchMemory>* memory,
    std::vector<std::shared_ptr<BatchMemory>>* spoilt) {
  const MonotonicTime deadline = Clock::Real().Now() + kMaxReuseWait;
  MutexLock lock(&mu_);
  while (true) {
    for (size_t i = free_.size(); i-- > 0;) {
      const BatchMemory::Reuse reuse = free_[i]->reuse();
      if (reuse == BatchMemory::Reuse::kLater) continue;
      std::shared_ptr<BatchMemory> found = std::move(free_[i]);
      free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
      if (reuse == BatchMemory::Reuse::kNever) {
        spoilt->push_back(std::move(found));
        continue;
      }
      *memory = std::move(found);
      ++in_use_;
      return absl::OkStatus();
    }
    if (free_.size() <= max_free_) return absl::OkStatus();
    const MonotonicTime now = Clock::Real().Now();
    if (now >= deadline)
      return ResourceExhausted(
          "memory for a batch: {} batches were given back on streams that have "
          "not finished with any of them within {:g} s",
          free_.size(), std::chrono::duration<double>(kMaxReuseWait).count());
    // A device does not say when it has finished.
    returned_.WaitUntil(&mu_, std::min(deadline, now + kLookAgain));
  }
}

absl::StatusOr<BatchPool::Buffer> BatchPool::Take() {
  Buffer buffer;
  std::vector<std::shared_ptr<BatchMemory>> spoilt;
  const absl::Status status = TakeFree(&buffer.memory_, &spoilt);
  if (!spoilt.empty()) {
    spoilt.clear();
    dropped_.Call();
  }
  RETURN_IF_ERROR(status);
  if (!buffer.memory_) {
    absl::StatusOr<std::shared_ptr<BatchMemory>> memory = maker_(bytes_);
    if (!memory.ok()) return memory.status();
    buffer.memory_ = *std::move(memory);
    MutexLock lock(&mu_);
    ++in_use_;
  }
  buffer.pool_ = shared_from_this();
  return buffer;
}

void BatchPool::Return(std::shared_ptr<BatchMemory> memory) {
  {
    MutexLock lock(&mu_);
    --in_use_;
    const BatchMemory::Reuse reuse = memory->reuse();
    // What a device works on is not dropped here: that would wait for it.
    if (reuse == BatchMemory::Reuse::kLater ||
        (reuse == BatchMemory::Reuse::kNow && free_.size() < max_free_)) {
      free_.push_back(std::move(memory));
      returned_.NotifyOne();
      return;
    }
  }
  memory.reset();
  dropped_.Call();
}

void BatchPool::SetOnDropped(std::function<void()> dropped) {
  dropped_.Set(std::move(dropped));
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
