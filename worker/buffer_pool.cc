// SPDX-License-Identifier: Apache-2.0
//
// Buffers that come back are pushed on a lock-free stack; Acquire, under its
// lock, takes the whole stack at once and sorts it into the classes' lists.
// Nothing is ever popped from the stack singly, so that a node's address
// returning to the top between a load and an exchange does no harm.
#include "worker/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

namespace leat::worker {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSmallestClass = 64 << 10;

// Classes are (4 + k) / 4 × 2^e for k = 0 … 3.
size_t ClassOf(size_t bytes) {
  if (bytes <= kSmallestClass) return 0;
  const int shift = std::bit_width(bytes - 1) - 3;  // keeps three leading bits
  const size_t leading = ((bytes - 1) >> shift) + 1;  // 5 … 8
  const int base = std::bit_width(kSmallestClass) - 3;
  return static_cast<size_t>(shift - base) * 4 + leading - 4;
}

size_t BytesOf(size_t size_class) {
  return (4 + size_class % 4) * (kSmallestClass / 4) << (size_class / 4);
}

class OrdinaryMemory final : public BufferMemory {
 public:
  std::byte* Allocate(size_t bytes) override {
    return static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes));
  }
  void Free(std::byte* memory, size_t) override { std::free(memory); }
};

}  // namespace

struct PooledBuffer::Slot {
  Slot* next = nullptr;
  std::byte* memory = nullptr;
  size_t size_class = 0;
};

struct PooledBuffer::PoolState {
  PoolState(size_t limit, std::shared_ptr<WakeSignal> signal,
            std::shared_ptr<BufferMemory> source)
      : limit_bytes(limit),
        wake(std::move(signal)),
        memory(std::move(source)) {}
  ~PoolState() {
    MutexLock lock(&mu);
    CollectReturned();
    for (std::vector<Slot*>& list : free)
      for (Slot* slot : list) Destroy(slot);
  }

  void CollectReturned() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    Slot* slot = returned.exchange(nullptr, std::memory_order_acquire);
    while (slot != nullptr) {
      Slot* const next = slot->next;
      free[slot->size_class].push_back(slot);
      slot = next;
    }
  }
  // Frees kept buffers until `bytes` more fit the limit, or none is left.
  void MakeRoom(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    for (size_t c = free.size(); c-- > 0;)
      while (!free[c].empty() && total_bytes + bytes > limit_bytes) {
        total_bytes -= BytesOf(c);
        Destroy(free[c].back());
        free[c].pop_back();
        total.fetch_sub(1, std::memory_order_relaxed);
      }
  }
  void Destroy(Slot* slot) const {
    memory->Free(slot->memory, BytesOf(slot->size_class));
    delete slot;
  }

  const size_t limit_bytes;
  const std::shared_ptr<WakeSignal> wake;
  const std::shared_ptr<BufferMemory> memory;
  std::atomic<Slot*> returned{nullptr};
  std::atomic<size_t> in_use_bytes{0};
  std::atomic<uint64_t> in_use{0}, total{0}, allocations{0};
  Mutex mu;
  std::vector<std::vector<Slot*>> free ABSL_GUARDED_BY(mu);  // [class]
  size_t total_bytes ABSL_GUARDED_BY(mu) = 0;
};

PooledBuffer::PooledBuffer(PooledBuffer&& other) noexcept
    : pool_(std::move(other.pool_)),
      slot_(std::exchange(other.slot_, nullptr)),
      bytes_(std::exchange(other.bytes_, {})) {}

PooledBuffer& PooledBuffer::operator=(PooledBuffer&& other) noexcept {
  if (this == &other) return *this;
  Release();
  pool_ = std::move(other.pool_);
  slot_ = std::exchange(other.slot_, nullptr);
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

void PooledBuffer::Release() {
  if (slot_ == nullptr) return;
  PoolState& pool = *pool_;
  const size_t bytes = BytesOf(slot_->size_class);
  slot_->next = pool.returned.load(std::memory_order_relaxed);
  while (!pool.returned.compare_exchange_weak(slot_->next, slot_,
                                              std::memory_order_release,
                                              std::memory_order_relaxed)) {
  }
  pool.in_use.fetch_sub(1);
  pool.in_use_bytes.fetch_sub(bytes);
  pool.wake->Notify();
  slot_ = nullptr;
  bytes_ = {};
  pool_.reset();
}

BufferPool::BufferPool(size_t limit_bytes, std::shared_ptr<WakeSignal> wake,
                       std::shared_ptr<BufferMemory> memory)
    : state_(std::make_shared<PooledBuffer::PoolState>(
          limit_bytes, std::move(wake),
          memory != nullptr ? std::move(memory)
                            : std::make_shared<OrdinaryMemory>())) {}
BufferPool::~BufferPool() = default;

std::optional<PooledBuffer> BufferPool::Acquire(size_t bytes, size_t reserve) {
  using Slot = PooledBuffer::Slot;
  PooledBuffer::PoolState& pool = *state_;
  const size_t size_class = ClassOf(bytes);
  const size_t class_bytes = BytesOf(size_class);
  MutexLock lock(&pool.mu);
  if (!CanAcquire(bytes, reserve)) return std::nullopt;
  if (pool.free.size() <= size_class) pool.free.resize(size_class + 1);
  pool.CollectReturned();
  Slot* slot = nullptr;
  if (std::vector<Slot*>& list = pool.free[size_class]; !list.empty()) {
    slot = list.back();
    list.pop_back();
  } else {
    pool.MakeRoom(class_bytes);
    std::byte* const memory = pool.memory->Allocate(class_bytes);
    if (memory == nullptr) return std::nullopt;
    slot = new Slot{.memory = memory, .size_class = size_class};
    pool.total_bytes += class_bytes;
    pool.total.fetch_add(1, std::memory_order_relaxed);
    pool.allocations.fetch_add(1, std::memory_order_relaxed);
  }
  pool.in_use.fetch_add(1);
  pool.in_use_bytes.fetch_add(class_bytes);
  PooledBuffer buffer;
  buffer.pool_ = state_;
  buffer.slot_ = slot;
  buffer.bytes_ = std::span(slot->memory, bytes);
  return buffer;
}

bool BufferPool::CanAcquire(size_t bytes, size_t reserve) const {
  const size_t limit = state_->limit_bytes;
  return reserve <= limit &&
         state_->in_use_bytes.load() + ClassBytes(bytes) <= limit - reserve;
}

size_t BufferPool::limit_bytes() const { return state_->limit_bytes; }
size_t BufferPool::bytes_in_use() const { return state_->in_use_bytes.load(); }
uint64_t BufferPool::buffers_in_use() const { return state_->in_use.load(); }
uint64_t BufferPool::buffers_total() const { return state_->total.load(); }
uint64_t BufferPool::allocations_total() const {
  return state_->allocations.load();
}
size_t BufferPool::ClassBytes(size_t bytes) { return BytesOf(ClassOf(bytes)); }

}  // namespace leat::worker
