// SPDX-License-Identifier: Apache-2.0
#include "client/batch/batch_pool.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/status.h"

namespace leat::client {
namespace {

// A failed device never rings, so the pool looks after this time.
constexpr Duration kLookAnyway = std::chrono::seconds(1);

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

void BatchPool::Bell::Ring() {
  MutexLock lock(&mu_);
  ++rings_;
  rung_.NotifyAll();
}

uint64_t BatchPool::Bell::rings() const {
  MutexLock lock(&mu_);
  return rings_;
}

void BatchPool::Bell::WaitPast(uint64_t heard, MonotonicTime deadline) {
  MutexLock lock(&mu_);
  while (rings_ == heard && rung_.WaitUntil(&mu_, deadline)) {
  }
}

// Finds the newest unused buffer that can be taken. If all are busy, and there
// are enough of them, each one rings the bell when it is free.
BatchPool::Found BatchPool::Look() {
  Found found;
  MutexLock lock(&mu_);
  for (size_t i = free_.size(); i-- > 0 && !found.memory;) {
    const BatchMemory::Reuse reuse = free_[i]->reuse();
    if (reuse == BatchMemory::Reuse::kLater) continue;
    (reuse == BatchMemory::Reuse::kNow ? found.memory
                                       : found.spoilt.emplace_back()) =
        std::move(free_[i]);
    free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (found.memory) {
    ++in_use_;
    return found;
  }
  found.wait = free_.size() > max_free_;
  if (found.wait)
    for (const std::shared_ptr<BatchMemory>& memory : free_)
      memory->RingWhenFree([bell = bell_] { bell->Ring(); });
  return found;
}

absl::Status BatchPool::TakeFree(std::shared_ptr<BatchMemory>* memory) {
  const MonotonicTime deadline = Clock::Real().Now() + kMaxReuseWait;
  while (true) {
    const uint64_t heard = bell_->rings();
    Found found = Look();
    *memory = std::move(found.memory);
    if (!found.spoilt.empty()) {
      found.spoilt.clear();
      dropped_.Call();
    }
    if (*memory || !found.wait) return absl::OkStatus();
    const MonotonicTime now = Clock::Real().Now();
    if (now >= deadline)
      return ResourceExhausted(
          "memory for a batch: {} batches were given back on streams that have "
          "not finished with any of them within {:g} s",
          free(), std::chrono::duration<double>(kMaxReuseWait).count());
    bell_->WaitPast(heard, std::min(deadline, now + kLookAnyway));
  }
}

absl::Status BatchPool::CheckKept() const {
  const size_t kept = this->kept();
  if (kept <= max_free_) return absl::OkStatus();
  return ResourceExhausted(
      "memory for a batch: {} batches of {} bytes were handed out or given "
      "back on a stream that was being captured into a CUDA graph. Replays may "
      "read them, so their memory is kept until the iterator is closed, of {} "
      "batches at most. Take batches outside of captures, and copy them into "
      "tensors that the graph reads",
      kept, bytes_, max_free_);
}

absl::StatusOr<BatchPool::Buffer> BatchPool::Take() {
  Buffer buffer;
  RETURN_IF_ERROR(CheckKept());
  RETURN_IF_ERROR(TakeFree(&buffer.memory_));
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
  size_t kept = 0;
  {
    MutexLock lock(&mu_);
    --in_use_;
    const BatchMemory::Reuse reuse = memory->reuse();
    // Memory in use by a device is not freed here: that would wait for the
    // device.
    if (reuse == BatchMemory::Reuse::kLater ||
        (reuse == BatchMemory::Reuse::kNow && free_.size() < max_free_)) {
      free_.push_back(std::move(memory));
    } else if (reuse == BatchMemory::Reuse::kKept) {
      kept_.push_back(std::move(memory));
      kept = kept_.size();
    }
  }
  if (kept == 1)
    LOG_WARN(
        "batch.captured bytes={} most={}: a batch was handed out or given back "
        "on a stream that was being captured into a CUDA graph; its memory is "
        "kept until the iterator is closed, since replays may read it",
        bytes_, max_free_);
  if (!memory) return bell_->Ring();
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

size_t BatchPool::kept() const {
  MutexLock lock(&mu_);
  return kept_.size();
}

size_t BatchPool::free() const {
  MutexLock lock(&mu_);
  return free_.size();
}

}  // namespace leat::client
