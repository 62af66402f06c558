// SPDX-License-Identifier: Apache-2.0
//
// Buffers that come back are pushed on a lock-free stack; Reserve, under its
// lock, takes the whole stack at once and sorts it into the classes' lists.
// Nothing is ever popped from the stack singly, so that a node's address
// returning to the top between a load and an exchange does no harm.
//
// Buffers that are evicted to make room for a reserved one leave the lists at
// once. The next Allocate frees them, without the lock. Until then both count,
// so during a call the memory may exceed the limit by the bytes that are being
// freed.
#include "worker/compute/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "core/status.h"

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

std::shared_ptr<BufferMemory> OrOrdinary(std::shared_ptr<BufferMemory> memory) {
  if (memory != nullptr) return memory;
  return std::make_shared<OrdinaryMemory>();
}

}  // namespace

struct PooledBuffer::Slot {
  Slot* next = nullptr;
  std::byte* memory = nullptr;  // null: only reserved
  size_t size_class = 0;
  BufferMemory* from = nullptr;  // the memory that `memory` came from
};

struct PooledBuffer::PoolState {
  PoolState(size_t limit, std::shared_ptr<WakeSignal> signal,
            std::shared_ptr<BufferMemory> source,
            std::shared_ptr<BufferMemory> second)
      : limit_bytes(limit),
        wake(std::move(signal)),
        memory(OrOrdinary(std::move(source))),
        fallback(OrOrdinary(std::move(second))) {}
  ~PoolState() {
    MutexLock lock(&mu);
    CollectReturned();
    for (std::vector<Slot*>& list : free) Destroy(list);
    Destroy(to_free);
  }

  void CollectReturned() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    Slot* slot = returned.exchange(nullptr, std::memory_order_acquire);
    while (slot != nullptr) {
      Slot* const next = slot->next;
      if (slot->memory != nullptr)
        free[slot->size_class].push_back(slot);
      else
        Forget(slot);
      slot = next;
    }
  }
  // No longer counts the buffer; the next Allocate frees it.
  void Forget(Slot* slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    total_bytes -= BytesOf(slot->size_class);
    total.fetch_sub(1, std::memory_order_relaxed);
    to_free.push_back(slot);
  }
  // Forgets kept buffers until `bytes` more fit within the limit, or none is
  // left.
  void MakeRoom(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    for (size_t c = free.size(); c-- > 0;)
      while (!free[c].empty() && total_bytes + bytes > limit_bytes) {
        Forget(free[c].back());
        free[c].pop_back();
      }
  }
  void FreeForgotten() {
    std::vector<Slot*> slots;
    {
      MutexLock lock(&mu);
      slots.swap(to_free);
    }
    Destroy(slots);
  }
  static void Destroy(std::vector<Slot*>& slots) {
    for (Slot* const slot : slots) {
      if (slot->memory != nullptr)
        slot->from->Free(slot->memory, BytesOf(slot->size_class));
      delete slot;
    }
    slots.clear();
  }

  const size_t limit_bytes;
  const std::shared_ptr<WakeSignal> wake;
  const std::shared_ptr<BufferMemory> memory, fallback;
  std::atomic<Slot*> returned{nullptr};
  std::atomic<size_t> in_use_bytes{0};
  std::atomic<uint64_t> in_use{0}, total{0}, allocations{0};
  Mutex mu;
  std::vector<std::vector<Slot*>> free ABSL_GUARDED_BY(mu);  // [class]
  std::vector<Slot*> to_free ABSL_GUARDED_BY(mu);
  size_t total_bytes ABSL_GUARDED_BY(mu) = 0;
};

PooledBuffer::PooledBuffer(PooledBuffer&& other) noexcept
    : pool_(std::move(other.pool_)),
      slot_(std::exchange(other.slot_, nullptr)),
      wanted_(other.wanted_),
      bytes_(std::exchange(other.bytes_, {})) {}

PooledBuffer& PooledBuffer::operator=(PooledBuffer&& other) noexcept {
  if (this == &other) return *this;
  Release();
  pool_ = std::move(other.pool_);
  slot_ = std::exchange(other.slot_, nullptr);
  wanted_ = other.wanted_;
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

absl::Status PooledBuffer::Allocate() {
  if (has_memory()) return absl::OkStatus();
  PoolState& pool = *pool_;
  pool.FreeForgotten();
  const size_t bytes = BytesOf(slot_->size_class);
  for (BufferMemory* const from : {pool.memory.get(), pool.fallback.get()}) {
    slot_->from = from;
    slot_->memory = from->Allocate(bytes);
    if (slot_->memory != nullptr) break;
  }
  if (slot_->memory == nullptr)
    return ResourceExhausted(
        "this worker has no memory for a buffer of {} bytes", bytes);
  pool.allocations.fetch_add(1, std::memory_order_relaxed);
  bytes_ = std::span(slot_->memory, wanted_);
  return absl::OkStatus();
}

BufferPool::BufferPool(size_t limit_bytes, std::shared_ptr<WakeSignal> wake,
                       std::shared_ptr<BufferMemory> memory,
                       std::shared_ptr<BufferMemory> fallback)
    : state_(std::make_shared<PooledBuffer::PoolState>(
          limit_bytes, std::move(wake), std::move(memory),
          std::move(fallback))) {}
BufferPool::~BufferPool() = default;

std::optional<PooledBuffer> BufferPool::Reserve(size_t bytes, size_t reserve) {
  using Slot = PooledBuffer::Slot;
  PooledBuffer::PoolState& pool = *state_;
  const size_t size_class = ClassOf(bytes);
  const size_t class_bytes = BytesOf(size_class);
  MutexLock lock(&pool.mu);
  if (!CanReserve(bytes, reserve)) return std::nullopt;
  if (pool.free.size() <= size_class) pool.free.resize(size_class + 1);
  pool.CollectReturned();
  Slot* slot = nullptr;
  if (std::vector<Slot*>& list = pool.free[size_class]; !list.empty()) {
    slot = list.back();
    list.pop_back();
  } else {
    pool.MakeRoom(class_bytes);
    slot = new Slot{.size_class = size_class};
    pool.total_bytes += class_bytes;
    pool.total.fetch_add(1, std::memory_order_relaxed);
  }
  pool.in_use.fetch_add(1);
  pool.in_use_bytes.fetch_add(class_bytes);
  PooledBuffer buffer;
  buffer.pool_ = state_;
  buffer.slot_ = slot;
  buffer.wanted_ = bytes;
  if (slot->memory != nullptr) buffer.bytes_ = std::span(slot->memory, bytes);
  return buffer;
}

bool BufferPool::CanReserve(size_t bytes, size_t reserve) const {
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
