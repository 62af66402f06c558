// SPDX-License-Identifier: Apache-2.0
//
// Rows in stages.
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/scheduler/storm.h"

namespace leat::worker {
namespace {

using StageTest = StagedTest;

TEST_F(StageTest, RowsArePreparedThenFinishedTogether) {
  const auto id = Open(Staged());
  ASSERT_TRUE(scheduler_.Ask(id, MakeRequest(1, 0, 0, 10, 4)).ok());
  EXPECT_EQ(RunAll(3), 3);
  EXPECT_EQ(device_.finishes, 0);
  EXPECT_EQ(RunAll(), 1);
  EXPECT_EQ(device_.finishes, 1);
  EXPECT_EQ(sink_->size(), 0u);
  EXPECT_FALSE(scheduler_.WaitIdle(MonotonicTime()));
  EXPECT_TRUE(device_.FinishOne());
  auto groups = sink_->Take();
  ASSERT_EQ(groups.size(), 1u);
  ASSERT_EQ(groups[0].payload.size(), 4 * (kBig + 8));
  EXPECT_EQ(groups[0].payload[0], std::byte{10});
  EXPECT_EQ(groups[0].payload[4 * kBig], std::byte{10});
  EXPECT_EQ(device_.stages, 0);
  groups.clear();
  ExpectNothingLeft();
}

TEST_F(StageTest, AStageMayEndWithinFinish) {
  device_.inline_done = true;
  const auto memory = std::make_shared<FakeMemory>(4);
  const auto id = Open(Staged());
  ASSERT_TRUE(scheduler_
                  .Ask(id, Placed(MakeRequest(1, 0, 0, 10, 4), memory,
                                  {3, 2, 1, 0}, Lease()))
                  .ok());
  RunAll();
  EXPECT_EQ(sink_->size(), 1u);
  EXPECT_EQ(memory->At(0), 13u);
  EXPECT_EQ(memory->At(3), 10u);
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(memory.use_count(), 1);
  sink_->Take();
  ExpectNothingLeft();
}

TEST_F(StageTest, ADeviceWithoutRoomLetsOtherJobsWork) {
  sink_->KeepNothing();
  const auto staged = Open(Staged());
  const auto plain = Open(std::make_shared<FakeWork>("b"));
  ASSERT_TRUE(scheduler_.Ask(staged, MakeRequest(1, 0, 0, 0, 40)).ok());
  ASSERT_TRUE(scheduler_.Ask(plain, MakeRequest(1, 0, 0, 0, 40)).ok());
  EXPECT_EQ(RunAll(), 2 * 4 + 40);
  while (device_.FinishOne()) RunAll();
  EXPECT_EQ(device_.finishes, 10);
  ExpectNothingLeft();
}

TEST_F(StageTest, ARefusedGroupIsTriedAgainAndNothingLeaks) {
  sink_->KeepNothing();
  device_.inline_done = true;
  device_.refuse = true;
  const auto staged = Open(Staged());
  const auto plain = Open(std::make_shared<FakeWork>("b"));
  ASSERT_TRUE(scheduler_.Ask(staged, MakeRequest(1, 0, 0, 0, 4)).ok());
  ASSERT_TRUE(scheduler_.Ask(plain, MakeRequest(1, 0, 0, 0, 4)).ok());
  EXPECT_TRUE(scheduler_.RunOne(nullptr));
  EXPECT_EQ(RunAll(), 7);
  ExpectNothingLeft();
}

TEST_F(StageTest, AnErrorInPrepareFailsTheGroupWithoutFinish) {
  const auto work = Staged();
  work->bad_sample = 1;
  const auto id = Open(work);
  ASSERT_TRUE(scheduler_
                  .Ask(id, Placed(MakeRequest(1, 0, 0, 0, 4),
                                  std::make_shared<FakeMemory>(4), {0, 1, 2, 3},
                                  Lease()))
                  .ok());
  RunAll();
  const auto groups = sink_->Take();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(absl::IsDataLoss(groups[0].status));
  EXPECT_EQ(device_.finishes, 0);
  EXPECT_EQ(ended_, 1);
  ExpectNothingLeft();
}

TEST_F(StageTest, AnErrorOfTheStageFailsTheGroup) {
  const auto id = Open(Staged());
  ASSERT_TRUE(scheduler_.Ask(id, MakeRequest(1, 0, 0, 0, 4)).ok());
  RunAll();
  ASSERT_TRUE(device_.FinishOne(Unavailable("the device is lost")));
  const auto groups = sink_->Take();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(groups[0].status));
  EXPECT_TRUE(groups[0].payload.empty());
  EXPECT_EQ(scheduler_.stats().row_errors_total, 4u);
  ExpectNothingLeft();
}

TEST_F(StageTest, CancelledAtEveryPointNothingIsLeft) {
  for (int rows = 0; rows <= 9; ++rows) {
    begun_ = ended_ = 0;
    const auto memory = std::make_shared<FakeMemory>(9);
    const auto id = Open(Staged());
    ASSERT_TRUE(scheduler_
                    .Ask(id, Placed(MakeRequest(1, 0, 0, 0, 9), memory,
                                    {0, 1, 2, 3, 4, 5, 6, 7, 8}, Lease()))
                    .ok());
    for (int i = 0; i < rows && scheduler_.RunOne(nullptr);) ++i;
    scheduler_.Cancel(id, 1);
    EXPECT_EQ(RunAll(), 0);
    // Groups that were handed to the device are finished and delivered.
    EXPECT_EQ(ended_, device_.stages == 0 ? 1 : 0) << rows;
    while (device_.FinishOne()) {
    }
    EXPECT_EQ(ended_, 1) << rows;
    EXPECT_EQ(sink_->Take().size(), static_cast<size_t>(std::min(rows, 8) / 4));
    scheduler_.CloseStream(id);
    EXPECT_EQ(memory.use_count(), 1);
    ExpectNothingLeft();
  }
}

TEST_F(StageTest, ClosedWhileADeviceWritesTheMemoryStaysUntilItsEnd) {
  const auto memory = std::make_shared<FakeMemory>(4);
  const auto id = Open(Staged());
  ASSERT_TRUE(scheduler_
                  .Ask(id, Placed(MakeRequest(1, 0, 0, 10, 4), memory,
                                  {0, 1, 2, 3}, Lease()))
                  .ok());
  RunAll();
  scheduler_.CloseStream(id);
  EXPECT_EQ(ended_, 0);
  EXPECT_GT(memory.use_count(), 1);
  EXPECT_TRUE(device_.FinishOne());
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(memory.use_count(), 1);
  sink_->Take();
  ExpectNothingLeft();
}

TEST_F(StageTest, PreparingIsChargedAndWaitingForTheDeviceIsNot) {
  const auto work = Staged();
  work->on_compute = [this](uint64_t, uint64_t) {
    clock_.Advance(std::chrono::milliseconds(2));
  };
  const auto id = Open(work);
  ASSERT_TRUE(scheduler_.Ask(id, MakeRequest(1, 0, 0, 0, 4)).ok());
  RunAll();
  clock_.Advance(std::chrono::seconds(1));
  device_.FinishOne();
  EXPECT_EQ(scheduler_.stats().busy_ns_total, 8'000'000u);
}

// Uses real threads and a device thread, and withdraws everything at random.
TEST(StageThreads, SurviveStorms) {
  const auto wake = std::make_shared<WakeSignal>();
  BufferPool pool(4 << 20, wake);
  FakeDevice device(wake, 3);
  Storm(
      {.clients = 3, .slots = true},
      [&](int round) {
        auto work = std::make_shared<StagedWork>(
            std::string(1, "abc"[round % 3]), &device);
        if (round % 4 == 0) work->bad_sample = 105;
        return work;
      },
      &pool, wake, &device)
      .Run();
}

TEST(StageThreads, StopWaitsForTheDevice) {
  const auto wake = std::make_shared<WakeSignal>();
  BufferPool pool(4 << 20, wake);
  FakeDevice device(wake, 2);
  const auto sink = std::make_shared<FakeSink>();
  std::atomic<bool> stopped{false};
  std::thread finisher;
  {
    Scheduler scheduler({.threads = 2, .group_bytes = 400}, &pool, wake,
                        Clock::Real());
    const auto id =
        scheduler.OpenStream(std::make_shared<StagedWork>("a", &device), sink);
    ASSERT_TRUE(id.ok());
    // More rows than the device takes: the rest is forgotten.
    ASSERT_TRUE(scheduler.Ask(*id, MakeRequest(1, 0, 0, 0, 100)).ok());
    device.WaitOne();
    finisher = std::thread([&] {
      while (!stopped)
        if (!device.FinishOne()) std::this_thread::yield();
    });
  }
  stopped = true;
  finisher.join();
  EXPECT_GE(sink->size(), 1u);
  EXPECT_EQ(device.stages, 0);
  sink->Take();
  EXPECT_EQ(pool.buffers_in_use(), 0u);
}

TEST(StageThreads, StopSaysWhatTheDeviceDoesNotEnd) {
  const auto wake = std::make_shared<WakeSignal>();
  BufferPool pool(4 << 20, wake);
  FakeDevice device(wake, 2);
  const auto sink = std::make_shared<FakeSink>();
  Scheduler scheduler({.threads = 2, .group_bytes = 400}, &pool, wake,
                      Clock::Real());
  const auto id =
      scheduler.OpenStream(std::make_shared<StagedWork>("a", &device), sink);
  ASSERT_TRUE(id.ok());
  ASSERT_TRUE(scheduler.Ask(*id, MakeRequest(1, 0, 0, 0, 3)).ok());
  device.WaitOne();
  const Scheduler::Left left = StopButFor(scheduler);
  EXPECT_EQ(left.decode_threads, 0);
  EXPECT_EQ(left.stages, 1u);
  EXPECT_EQ(sink->size(), 0u);
  device.FinishOne();
  EXPECT_TRUE(scheduler.Stop().none());
  EXPECT_EQ(sink->size(), 1u);
}

TEST(StageThreads, StopSaysWhichRowsDoNotEnd) {
  const auto wake = std::make_shared<WakeSignal>();
  BufferPool pool(4 << 20, wake);
  const auto work = std::make_shared<FakeWork>("a");
  std::atomic<bool> begun{false}, held{true};
  work->on_compute = [&](uint64_t, uint64_t) {
    begun = true;
    begun.notify_all();
    held.wait(true);
  };
  Scheduler scheduler({.threads = 2}, &pool, wake, Clock::Real());
  const auto id = scheduler.OpenStream(work, std::make_shared<FakeSink>());
  ASSERT_TRUE(id.ok());
  ASSERT_TRUE(scheduler.Ask(*id, MakeRequest(1, 0, 0, 0, 1)).ok());
  begun.wait(false);
  EXPECT_EQ(scheduler.Stop(Clock::Real().Now() + std::chrono::milliseconds(20))
                .decode_threads,
            1);
  held = false;
  held.notify_all();
  EXPECT_TRUE(scheduler.Stop().none());
}

}  // namespace
}  // namespace leat::worker
