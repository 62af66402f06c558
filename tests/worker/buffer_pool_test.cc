// SPDX-License-Identifier: Apache-2.0
#include "worker/buffer_pool.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace leat::worker {
namespace {

constexpr size_t kKiB = 1024;

std::shared_ptr<WakeSignal> Wake() { return std::make_shared<WakeSignal>(); }

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
    auto buffer = pool.Acquire(100 * kKiB);
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
  auto a = pool.Acquire(64 * kKiB), b = pool.Acquire(64 * kKiB);
  ASSERT_TRUE(a && b);
  EXPECT_FALSE(pool.Acquire(64 * kKiB, 128 * kKiB));
  EXPECT_FALSE(pool.CanAcquire(64 * kKiB, 128 * kKiB));
  auto c = pool.Acquire(64 * kKiB), d = pool.Acquire(64 * kKiB);
  ASSERT_TRUE(c && d);
  EXPECT_FALSE(pool.Acquire(1));
  a.reset();
  EXPECT_TRUE(pool.CanAcquire(1));
  EXPECT_FALSE(pool.Acquire(65 * kKiB));
}

TEST(BufferPool, KeptBuffersOfOtherClassesMakeRoom) {
  BufferPool pool(256 * kKiB, Wake());
  { auto a = pool.Acquire(64 * kKiB), b = pool.Acquire(64 * kKiB); }
  EXPECT_EQ(pool.buffers_total(), 2u);
  EXPECT_TRUE(pool.Acquire(256 * kKiB));
  EXPECT_EQ(pool.buffers_total(), 1u);
}

TEST(BufferPool, ABufferMayOutliveItsPool) {
  std::optional<PooledBuffer> buffer;
  {
    BufferPool pool(256 * kKiB, Wake());
    buffer = pool.Acquire(1000);
  }
  std::memset(buffer->bytes().data(), 1, buffer->bytes().size());
  buffer.reset();
}

TEST(BufferPool, AReleaseWakesWhoWaits) {
  const auto wake = Wake();
  BufferPool pool(64 * kKiB, wake);
  auto buffer = pool.Acquire(1);
  std::thread waiter([&] {
    while (true) {
      const uint32_t seen = wake->Prepare();
      if (pool.Acquire(1)) return;
      wake->Wait(seen);
    }
  });
  buffer.reset();
  waiter.join();
}

TEST(BufferPool, NothingIsLostBetweenThreads) {
  BufferPool pool(8 * 64 * kKiB, Wake());
  std::atomic<int> lent{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<PooledBuffer> held;
      for (int i = 0; i < 2000; ++i) {
        if (auto buffer = pool.Acquire(1 + (i % 3) * 64 * kKiB)) {
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
