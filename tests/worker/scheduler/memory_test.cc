// SPDX-License-Identifier: Apache-2.0
//
// When buffers, a device's room and records are taken, and when they are given
// back.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/source/fake_storage.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;

class SlowMemory : public BufferMemory {
 public:
  std::byte* Allocate(size_t bytes) override {
    if (on_allocate) on_allocate();
    if (empty) return nullptr;
    return static_cast<std::byte*>(std::aligned_alloc(64, bytes));
  }
  void Free(std::byte* memory, size_t) override {
    if (on_free) on_free();
    std::free(memory);
  }
  std::function<void()> on_allocate, on_free;
  std::atomic<bool> empty{false};
};

class MemoryTest : public ::testing::Test {
 protected:
  static SchedulerOptions Options() {
    SchedulerOptions options;
    options.threads = 0;
    options.group_bytes = 4 * (kBig + 8);
    return options;
  }
  Scheduler::StreamId Open(std::shared_ptr<const RowWork> work) {
    auto id = scheduler_.OpenStream(std::move(work), sink_);
    EXPECT_TRUE(id.ok()) << id.status();
    return *id;
  }
  int RunAll() {
    int rows = 0;
    while (scheduler_.RunOne(nullptr)) ++rows;
    return rows;
  }

  FakeClock clock_;
  std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
  std::shared_ptr<SlowMemory> memory_ = std::make_shared<SlowMemory>();
  std::shared_ptr<SlowMemory> fallback_ = std::make_shared<SlowMemory>();
  BufferPool pool_{256 << 10, wake_, memory_, fallback_};
  FakeDevice device_{wake_, 2};
  std::shared_ptr<FakeSink> sink_ = std::make_shared<FakeSink>();
  Scheduler scheduler_{Options(), &pool_, wake_, clock_};
};

TEST_F(MemoryTest, IsAllocatedAndFreedWithoutTheLock) {
  int allocated = 0, freed = 0;
  memory_->on_allocate = [&] {
    ++allocated;
    scheduler_.stats();  // would not return
  };
  memory_->on_free = [&] {
    ++freed;
    scheduler_.stats();
  };
  ASSERT_TRUE(scheduler_
                  .Ask(Open(std::make_shared<FakeWork>("a")),
                       MakeRequest(1, 0, 0, 0, 12))
                  .ok());
  EXPECT_EQ(RunAll(), 12);
  sink_->Take();
  sink_->KeepNothing();
  // Another size: there is room for it when one of the first has gone.
  ASSERT_TRUE(scheduler_
                  .Ask(Open(std::make_shared<FakeWork>("b", 120 << 10)),
                       MakeRequest(1, 0, 0, 0, 4))
                  .ok());
  EXPECT_EQ(RunAll(), 4);
  EXPECT_EQ(allocated, 4);
  EXPECT_EQ(freed, 1);
  memory_->on_allocate = memory_->on_free = nullptr;
}

TEST_F(MemoryTest, ThatTakesLongHoldsUpItsStreamOnly) {
  sink_->KeepNothing();
  const auto other = std::make_shared<FakeSink>();
  other->KeepNothing();
  auto plain = scheduler_.OpenStream(std::make_shared<FakeWork>("b"), other);
  ASSERT_TRUE(plain.ok());
  ASSERT_TRUE(scheduler_.Ask(*plain, MakeRequest(1, 0, 0, 0, 4)).ok());
  EXPECT_EQ(RunAll(), 4);  // it has a buffer, which is kept
  const auto id = Open(std::make_shared<FakeWork>("a", 100 << 10));
  ASSERT_TRUE(scheduler_.Ask(id, MakeRequest(1, 0, 0, 0, 1)).ok());
  int meanwhile = 0;
  bool first = true;
  memory_->on_allocate = [&] {
    if (!std::exchange(first, false)) return;
    std::thread thread([&] {
      // Groups of the other job are computed, and no second one of this.
      EXPECT_TRUE(scheduler_.Ask(*plain, MakeRequest(2, 0, 0, 0, 8)).ok());
      EXPECT_TRUE(scheduler_.Ask(id, MakeRequest(2, 0, 0, 0, 1)).ok());
      meanwhile = RunAll();
    });
    thread.join();
  };
  EXPECT_EQ(RunAll(), 2);
  EXPECT_EQ(meanwhile, 8);
  memory_->on_allocate = nullptr;
}

TEST_F(MemoryTest, WithoutAnyTheRequestFails) {
  memory_->empty = fallback_->empty = true;
  const auto id = Open(std::make_shared<StagedWork>("a", &device_));
  ASSERT_TRUE(scheduler_.Ask(id, MakeRequest(7, 0, 0, 0, 6)).ok());
  EXPECT_EQ(RunAll(), 0);
  const auto groups = sink_->Take();
  ASSERT_EQ(groups.size(), 2u);
  for (const FinishedGroup& group : groups) {
    EXPECT_TRUE(absl::IsResourceExhausted(group.status)) << group.status;
    EXPECT_THAT(Message(group.status), HasSubstr("no memory for a buffer of"));
    EXPECT_THAT(Message(group.status), HasSubstr("request 7"));
  }
  EXPECT_TRUE(scheduler_.WaitIdle(MonotonicTime()));
  EXPECT_EQ(pool_.bytes_in_use(), 0u);
  EXPECT_EQ(device_.stages, 0);
  // There is memory again, and the same request id may be used.
  fallback_->empty = false;
  device_.inline_done = true;
  ASSERT_TRUE(scheduler_.Ask(id, MakeRequest(7, 0, 0, 0, 6)).ok());
  EXPECT_EQ(RunAll(), 6);
  EXPECT_TRUE(sink_->Take()[0].status.ok());
}

TEST_F(MemoryTest, ACancelledAskLeavesNothingWhileItsGroupIsOpened) {
  const auto id = Open(std::make_shared<StagedWork>("a", &device_));
  ASSERT_TRUE(scheduler_.Ask(id, MakeRequest(1, 0, 0, 0, 4)).ok());
  memory_->on_allocate = [&] { scheduler_.Cancel(id, 1); };
  EXPECT_EQ(RunAll(), 0);
  EXPECT_TRUE(scheduler_.WaitIdle(MonotonicTime()));
  EXPECT_EQ(pool_.bytes_in_use(), 0u);
  EXPECT_EQ(device_.stages, 0);
  memory_->on_allocate = nullptr;
}

TEST_F(MemoryTest, AStreamClosesWhileItsGroupIsOpened) {
  const auto id = Open(std::make_shared<StagedWork>("a", &device_));
  ASSERT_TRUE(scheduler_.Ask(id, MakeRequest(1, 0, 0, 0, 8)).ok());
  memory_->on_allocate = [&] { scheduler_.CloseStream(id); };
  EXPECT_EQ(RunAll(), 0);
  EXPECT_TRUE(scheduler_.WaitIdle(MonotonicTime()));
  EXPECT_EQ(pool_.bytes_in_use(), 0u);
  EXPECT_EQ(device_.stages, 0);
  EXPECT_EQ(sink_->size(), 0u);
  memory_->on_allocate = nullptr;
}

// A clock that all threads may advance.
class SharedClock : public Clock {
 public:
  MonotonicTime Now() const override {
    return MonotonicTime(std::chrono::nanoseconds(ns_.load()));
  }
  WallTime WallNow() const override { return {}; }
  void Advance(std::chrono::nanoseconds by) { ns_ += by.count(); }

 private:
  std::atomic<int64_t> ns_{3'600'000'000'000};
};

class HeldStorageTest : public ReadAheadTest {
 protected:
  FakeDevice device_{wake_, 2};
};

TEST_F(HeldStorageTest, AJobWhoseStorageHangsHoldsNoPlaceOnTheDevice) {
  device_.inline_done = true;
  storage_.Hold(0, 1000);
  // Each of its groups lacks one record, or both.
  for (uint64_t even = 0; even < 6; even += 2) storage_.Release(even);
  const auto hanging = std::make_shared<FakeSink>();
  hanging->KeepNothing();
  Ask(Open(std::make_shared<StagedReadingWork>(&device_, &storage_, "a"),
           hanging),
      MakeRequest(1, 0, 0, 0, 100));
  storage_.WaitBegun(4);
  while (storage_.live < 3) std::this_thread::yield();
  EXPECT_EQ(device_.stages, 0);
  EXPECT_EQ(pool_.buffers_in_use(), 0u);
  // All slots are the other job's, at the same time.
  device_.inline_done = false;
  Ask(Open(std::make_shared<StagedReadingWork>(&device_, &storage_, "b"),
           sink_),
      MakeRequest(1, 0, 0, 5000, 40));
  for (int round = 0; round < 10; ++round) {
    while (device_.waiting() < 2) std::this_thread::yield();
    EXPECT_EQ(device_.stages, 2);
    device_.FinishOne();
    device_.FinishOne();
  }
  sink_->WaitRows(40);
  EXPECT_EQ(hanging->size(), 0u);
  device_.inline_done = true;
  storage_.ReleaseAll();
  hanging->WaitRows(100);
  scheduler_.reset();
}

TEST_F(HeldStorageTest, ADevicesGroupsBeginWithWhatIsThereIfNoMoreMayBeRead) {
  device_.inline_done = true;
  options_.group_bytes = 10 * (kBig + 8);
  options_.read_ahead_bytes = 1;  // one row at a time
  Ask(Open(std::make_shared<StagedReadingWork>(&device_, &storage_), sink_),
      MakeRequest(1, 0, 0, 0, 40));
  sink_->WaitRows(40);
  scheduler_.reset();
}

TEST_F(HeldStorageTest, HalfOfTheBuffersAreNotBookedForIt) {
  BufferPool pool(8 * BufferPool::ClassBytes(1), wake_);  // eight buffers
  options_.read_threads = 64;
  scheduler_ =
      std::make_unique<Scheduler>(options_, &pool, wake_, Clock::Real());
  storage_.Hold(0, 1000);
  const auto hanging = std::make_shared<FakeSink>();
  for (uint64_t stream = 0; stream < 4; ++stream)
    Ask(Open(Job("a"), hanging), MakeRequest(1, 0, 0, 100 * stream, 100));
  storage_.WaitBegun(8);  // of four groups
  // The quarter is for streams that have none: two are left to this one, whose
  // consumer does not read.
  const auto kept = std::make_shared<FakeSink>();
  Ask(Open(Job("b"), kept), MakeRequest(1, 0, 0, 5000, 100));
  kept->WaitRows(4);
  EXPECT_EQ(storage_.order().size(), 8u + 4u);
  storage_.ReleaseAll();
  scheduler_.reset();
}

TEST_F(HeldStorageTest, RecordsOfCancelledAsksAreDroppedAtOnce) {
  SharedClock clock;
  options_.threads = 0;  // no thread takes what is read
  options_.group_bytes = 20 * (kBig + 8);
  scheduler_ = std::make_unique<Scheduler>(options_, &pool_, wake_, clock);
  const auto work = Job("a");
  // Slow enough that a thread reads one record at a time.
  work->on_read = [&] { clock.Advance(std::chrono::milliseconds(1)); };
  const auto id = Open(work, sink_);
  for (uint64_t request = 1; request <= 50; ++request) {
    const uint64_t first = request * 100;
    storage_.Hold(first + 5);
    Ask(id, MakeRequest(request, 0, request, first, 20));
    while (storage_.live < 19) std::this_thread::yield();
    scheduler().Cancel(id, request);
    EXPECT_EQ(scheduler().stats().rows_ahead, 0u);
    // While storage still holds one of them.
    const MonotonicTime late = Clock::Real().Now() + std::chrono::seconds(10);
    while (storage_.live > 0 && Clock::Real().Now() < late)
      std::this_thread::yield();
    ASSERT_EQ(storage_.live, 0);
    storage_.Release(first + 5);
  }
  scheduler_.reset();
}

}  // namespace
}  // namespace leat::worker
