// SPDX-License-Identifier: Apache-2.0
#include "client/batch/batch_pool.h"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "client/fetch/latency.h"
#include "gtest/gtest.h"
#include "rpc/wire/memory_socket.h"

namespace leat::client {
namespace {

Field MakeField(std::string name, size_t row_bytes) {
  return {std::move(name),
          DType::kUint8,
          {static_cast<int64_t>(row_bytes)},
          row_bytes};
}

TEST(BatchLayout, EachFieldIsAlignedAndNoneOverlap) {
  BatchSchema schema;
  schema.fields = {MakeField("a", 1), MakeField("b", 63),
                   MakeField("c", 150528)};
  const BatchLayout layout(schema, 7);
  ASSERT_EQ(layout.parts.size(), 3u);
  size_t end = 0;
  for (const BatchLayout::Part& part : layout.parts) {
    EXPECT_EQ(part.offset % kFieldAlignment, 0u);
    EXPECT_GE(part.offset, end);
    end = part.offset + part.row_bytes * 7;
  }
  EXPECT_GE(layout.bytes, end);
  EXPECT_EQ(layout.row_bytes, 1u + 63 + 150528);
}

TEST(BatchPool, BuffersAreAlignedWritableAndReused) {
  for (const size_t bytes : {size_t{1}, size_t{5000}, size_t{9} << 20}) {
    const auto pool = BatchPool::Create(bytes, 2);
    std::byte* first = nullptr;
    {
      auto buffer = pool->Take();
      ASSERT_TRUE(buffer.ok());
      first = buffer->data();
      EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % kFieldAlignment, 0u);
      first[0] = std::byte{1};
      first[bytes - 1] = std::byte{2};
      EXPECT_EQ(pool->in_use(), 1u);
    }
    EXPECT_EQ(pool->in_use(), 0u);
    EXPECT_EQ(pool->free(), 1u);
    EXPECT_EQ(pool->Take()->data(), first);
  }
}

TEST(BatchPool, KeepsNoMoreFreeBuffersThanItMay) {
  const auto pool = BatchPool::Create(4096, 3);
  std::vector<BatchPool::Buffer> buffers;
  for (int i = 0; i < 10; ++i) buffers.push_back(*pool->Take());
  EXPECT_EQ(pool->in_use(), 10u);
  buffers.clear();
  EXPECT_EQ(pool->in_use(), 0u);
  EXPECT_EQ(pool->free(), 3u);
}

TEST(BatchPool, BufferOutlivesThePoolsOwner) {
  BatchPool::Buffer buffer;
  {
    auto pool = BatchPool::Create(4096, 1);
    buffer = *pool->Take();
  }
  buffer.data()[4095] = std::byte{7};
  EXPECT_EQ(buffer.bytes(), 4096u);
}

TEST(BatchPool, BuffersAreSealedMemoryThatCanBeShared) {
  const auto pool = BatchPool::Create(5000, 2);
  const auto buffer = *pool->Take();
  const BatchMemory& memory = *buffer.memory();
  EXPECT_TRUE(rpc::CheckHostMemory(memory.fd(), memory.mapped_bytes()).ok());
  EXPECT_EQ(memory.mapped_bytes(), 8192u);
  EXPECT_NE(ftruncate(memory.fd(), 0), 0);
  EXPECT_NE(memory.id(), (*pool->Take()).memory()->id());
  // The trainer reads the bytes that a worker writes.
  const std::byte value{42};
  EXPECT_EQ(pwrite(memory.fd(), &value, 1, 4999), 1);
  EXPECT_EQ(buffer.data()[4999], value);
}

TEST(BatchPool, DescriptorsAreBoundedHoweverManyBatchesAreHeld) {
  const auto pool = BatchPool::Create(4096, 2 * kMaxShareable);
  std::vector<BatchPool::Buffer> buffers;
  size_t lendable = 0;
  for (int i = 0; i < 2 * kMaxShareable; ++i) {
    buffers.push_back(*pool->Take());
    lendable += buffers.back().memory()->fd() >= 0;
  }
  EXPECT_EQ(lendable, static_cast<size_t>(kMaxShareable));
  buffers.clear();
  // The others are not kept, so that the next batches can be shared again.
  EXPECT_EQ(pool->free(), static_cast<size_t>(kMaxShareable));
  EXPECT_GE((*pool->Take()).memory()->fd(), 0);
}

// Memory that a device works on until the test frees it.
class BusyMemory : public BatchMemory {
 public:
  std::byte* data() const override { return nullptr; }
  size_t mapped_bytes() const override { return 1; }
  Reuse reuse() override {
    ++looks;
    return busy ? Reuse::kLater : Reuse::kNow;
  }
  void RingWhenFree(std::function<void()> its_ring) override {
    ring = std::move(its_ring);
    armed.count_down();
  }
  void Finish() {
    busy = false;
    ring();
  }

  std::atomic<bool> busy = false;
  std::atomic<int> looks = 0;
  std::function<void()> ring;
  std::latch armed{1};
};

TEST(BatchPool, WhoWaitsForADeviceSleepsUntilItRings) {
  const auto memory = std::make_shared<BusyMemory>();
  const auto pool = BatchPool::Create(
      1, 0, [&](size_t) -> absl::StatusOr<std::shared_ptr<BatchMemory>> {
        return memory;
      });
  {
    const auto buffer = *pool->Take();
    memory->busy = true;
  }
  const int before = memory->looks;
  std::thread device([&] {
    memory->armed.wait();
    memory->Finish();
  });
  const auto taken = pool->Take();
  device.join();
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(memory->looks, before + 2) << "before the ring, and after it";
}

TEST(BatchPool, TellsWhenMemoryIsDroppedAfterItHasGone) {
  const auto pool = BatchPool::Create(4096, 0);
  std::weak_ptr<BatchMemory> memory;
  int told = 0;
  pool->SetOnDropped([&] {
    ++told;
    EXPECT_TRUE(memory.expired());
  });
  memory = (*pool->Take()).memory();
  EXPECT_EQ(told, 1);
  pool->SetOnDropped(nullptr);
  memory = (*pool->Take()).memory();
  EXPECT_EQ(told, 1);
}

TEST(BatchPool, MoreThanTheMachineHasIsAnError) {
  const auto pool = BatchPool::Create(size_t{1} << 60, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(pool->Take().status()));
  EXPECT_EQ(pool->in_use(), 0u);
}

TEST(LatencyHistogram, QuantilesAreWithinABucket) {
  LatencyHistogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.Add(std::chrono::milliseconds(i));
  EXPECT_NEAR(Milliseconds(histogram.Quantile(0.5)), 500, 50);
  EXPECT_NEAR(Milliseconds(histogram.Quantile(0.95)), 950, 95);
  EXPECT_EQ(histogram.Quantile(1.0), std::chrono::milliseconds(1000));
  EXPECT_NEAR(Milliseconds(histogram.mean()), 500.5, 0.01);
  histogram.Fade();
  EXPECT_NEAR(static_cast<double>(histogram.count()), 500, 300);
  EXPECT_NEAR(Milliseconds(histogram.mean()), 500.5, 0.01);
}

TEST(LatencyHistogram, EmptyAndExtremeValuesAreFine) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.Quantile(0.95), Duration(0));
  histogram.Add(Duration(-5));
  histogram.Add(Duration(0));
  histogram.Add(std::chrono::hours(1000));
  EXPECT_EQ(histogram.count(), 3u);
  EXPECT_EQ(histogram.max(), std::chrono::hours(1000));
}

}  // namespace
}  // namespace leat::client
