// SPDX-License-Identifier: Apache-2.0
#include "worker/compute/buffer_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace leat::worker {
namespace {

constexpr size_t kKiB = 1024;

std::shared_ptr<WakeSignal> Wake() { return std::make_shared<WakeSignal>(); }

// Returns a buffer with memory.
std::optional<PooledBuffer> Acquire(BufferPool& pool, size_t bytes,
                                    size_t reserve = 0) {
  std::optional<PooledBuffer> buffer = pool.Reserve(bytes, reserve);
  if (buffer) {
    EXPECT_TRUE(buffer->Allocate().ok());
  }
  return buffer;
}

TEST(BufferPool, ClassesHoldWhatTheyMustAndWasteAtMostAQuarter) {
  for (size_t bytes = 1; bytes < 300'000'000; bytes += 1 + bytes / 7) {
    for (const size_t near : {bytes - 1, bytes, bytes + 1}) {
      if (near == 0) continue;
      EXPECT_GE(BufferPool::ClassBytes(near), near);
      const size_t waste = std::max(64 * kKiB, near + near / 4 + 1);
      EXPECT_LE(BufferPool::ClassBytes(near), waste) << near;
    }
  }
}

TEST(BufferPool, BuffersAreAlignedAndUsedAgain) {
  BufferPool pool(1024 * kKiB, Wake());
  const std::byte* address = nullptr;
  for (int i = 0; i < 100; ++i) {
    auto buffer = Acquire(pool, 100 * kKiB);
    ASSERT_TRUE(buffer);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->bytes().data()) % 64, 0u);
    EXPECT_EQ(buffer->bytes().size(), 100 * kKiB);
    if (address == nullptr) address = buffer->bytes().data();
    EXPECT_EQ(buffer->bytes().data(), address);
    EXPECT_EQ(pool.buffers_in_use(), 1u);
  }
  EXPECT_EQ(pool.allocations_total(), 1u);
  EXPECT_EQ(pool.buffers_in_use(), 0u);
}

TEST(BufferPool, TheLimitHoldsAndTheReserveIsKept) {
  BufferPool pool(256 * kKiB, Wake());
  auto a = Acquire(pool, 64 * kKiB), b = Acquire(pool, 64 * kKiB);
  ASSERT_TRUE(a && b);
  EXPECT_FALSE(Acquire(pool, 64 * kKiB, 128 * kKiB));
  EXPECT_FALSE(pool.CanReserve(64 * kKiB, 128 * kKiB));
  auto c = Acquire(pool, 64 * kKiB), d = Acquire(pool, 64 * kKiB);
  ASSERT_TRUE(c && d);
  EXPECT_FALSE(Acquire(pool, 1));
  a.reset();
  EXPECT_TRUE(pool.CanReserve(1));
  EXPECT_FALSE(Acquire(pool, 65 * kKiB));
}

TEST(BufferPool, KeptBuffersOfOtherClassesMakeRoom) {
  BufferPool pool(256 * kKiB, Wake());
  { auto a = Acquire(pool, 64 * kKiB), b = Acquire(pool, 64 * kKiB); }
  EXPECT_EQ(pool.buffers_total(), 2u);
  EXPECT_TRUE(Acquire(pool, 256 * kKiB));
  EXPECT_EQ(pool.buffers_total(), 1u);
}

TEST(BufferPool, AReleaseWakesWhoWaits) {
  const auto wake = Wake();
  BufferPool pool(64 * kKiB, wake);
  auto buffer = Acquire(pool, 1);
  std::atomic<bool> given_up = false;
  std::promise<void> acquired;
  std::thread waiter([&] {
    while (!given_up) {
      const uint32_t seen = wake->Prepare();
      if (Acquire(pool, 1)) return acquired.set_value();
      wake->Wait(seen);
    }
  });
  buffer.reset();
  const auto status = acquired.get_future().wait_for(std::chrono::seconds(10));
  EXPECT_EQ(status, std::future_status::ready) << "nobody was woken";
  given_up = true;
  wake->Notify();
  waiter.join();
}

// Counts calls, and calls `before` before each.
class CountingMemory : public BufferMemory {
 public:
  std::byte* Allocate(size_t bytes) override {
    if (before) before();
    if (empty) return nullptr;
    ++live;
    return static_cast<std::byte*>(std::aligned_alloc(64, bytes));
  }
  void Free(std::byte* memory, size_t) override {
    if (before) before();
    --live;
    std::free(memory);
  }
  std::function<void()> before;
  std::atomic<bool> empty{false};
  std::atomic<int> live{0};
};

TEST(BufferPool, ABufferMayOutliveItsPool) {
  const auto memory = std::make_shared<CountingMemory>();
  std::optional<PooledBuffer> buffer;
  {
    BufferPool pool(256 * kKiB, Wake(), memory);
    buffer = Acquire(pool, 1000);
  }
  EXPECT_EQ(memory->live, 1);
  std::memset(buffer->bytes().data(), 1, buffer->bytes().size());
  buffer.reset();
  EXPECT_EQ(memory->live, 0);
}

TEST(BufferPool, MemoryComesAndGoesWithoutTheLock) {
  const auto memory = std::make_shared<CountingMemory>();
  {
    BufferPool pool(256 * kKiB, Wake(), memory);
    // Would not return under the pool's lock.
    memory->before = [&] { pool.Reserve(1); };
    { auto a = Acquire(pool, 64 * kKiB), b = Acquire(pool, 64 * kKiB); }
    EXPECT_EQ(memory->live, 2);
    EXPECT_TRUE(Acquire(pool, 256 * kKiB));  // two are freed for it
    EXPECT_EQ(memory->live, 1);
    memory->before = nullptr;
  }
  EXPECT_EQ(memory->live, 0);
}

TEST(BufferPool, AReservedBufferThatIsDroppedLeavesNothing) {
  const auto memory = std::make_shared<CountingMemory>();
  BufferPool pool(256 * kKiB, Wake(), memory);
  { auto kept = Acquire(pool, 256 * kKiB); }
  auto reserved = pool.Reserve(64 * kKiB);
  ASSERT_TRUE(reserved);
  EXPECT_FALSE(reserved->has_memory());
  EXPECT_EQ(pool.bytes_in_use(), 64 * kKiB);
  reserved.reset();
  EXPECT_EQ(pool.bytes_in_use(), 0u);
  EXPECT_TRUE(Acquire(pool, 256 * kKiB));
  EXPECT_EQ(memory->live, 1);
  EXPECT_EQ(pool.buffers_total(), 1u);
}

TEST(BufferPool, WhereItsKindOfMemoryIsNotThereItTakesTheOther) {
  const auto pinned = std::make_shared<CountingMemory>();
  const auto ordinary = std::make_shared<CountingMemory>();
  {
    BufferPool pool(1024 * kKiB, Wake(), pinned, ordinary);
    auto a = Acquire(pool, 64 * kKiB);
    pinned->empty = true;
    auto b = Acquire(pool, 64 * kKiB);
    EXPECT_EQ(b->bytes().size(), 64 * kKiB);
    EXPECT_EQ(pinned->live, 1);
    EXPECT_EQ(ordinary->live, 1);
    ordinary->empty = true;
    auto c = pool.Reserve(64 * kKiB);
    const absl::Status none = c->Allocate();
    EXPECT_TRUE(absl::IsResourceExhausted(none)) << none;
    ordinary->empty = false;
    EXPECT_TRUE(c->Allocate().ok());
  }
  EXPECT_EQ(pinned->live, 0);
  EXPECT_EQ(ordinary->live, 0);
}

TEST(BufferPool, NothingIsLostBetweenThreads) {
  BufferPool pool(8 * 64 * kKiB, Wake());
  std::atomic<int> lent{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<PooledBuffer> held;
      for (int i = 0; i < 2000; ++i) {
        if (auto buffer = Acquire(pool, 1 + (i % 3) * 64 * kKiB)) {
          EXPECT_LE(++lent, 8);
          buffer->bytes()[0] = std::byte(t);
          held.push_back(*std::move(buffer));
        }
        if (i % (t + 2) == 0) {
          lent -= static_cast<int>(held.size());
          held.clear();
        }
      }
      lent -= static_cast<int>(held.size());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.buffers_in_use(), 0u);
  EXPECT_EQ(pool.bytes_in_use(), 0u);
}

}  // namespace
}  // namespace leat::worker
