// SPDX-License-Identifier: Apache-2.0
//
// Rows of several requests and streams that a device computes together.
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/scheduler/storm.h"
#include "tests/worker/source/fake_storage.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

// Four rows per group, a device of two groups.
class JoinTest : public StagedTest {
 protected:
  void AskOne(Scheduler::StreamId id, uint64_t request, uint64_t step,
              uint64_t sample) {
    ASSERT_TRUE(
        scheduler_.Ask(id, MakeRequest(request, 0, step, sample, 1)).ok());
  }
  void FinishAll() {
    RunAll();
    while (device_.FinishOne()) RunAll();
  }
  // Returns the samples of one-row groups, from their payload, by request.
  std::map<uint64_t, uint64_t> Samples() {
    std::map<uint64_t, uint64_t> samples;
    for (const FinishedGroup& group : sink_->Take()) {
      EXPECT_TRUE(group.status.ok()) << group.status;
      EXPECT_EQ(group.payload.size(), kBig + 8);
      uint64_t sample = 0;
      std::memcpy(&sample, group.payload.data() + kBig, 8);
      EXPECT_EQ(group.payload[0], std::byte(sample & 255));
      EXPECT_TRUE(samples.emplace(group.request_id, sample).second);
    }
    return samples;
  }
};

TEST_F(JoinTest, OneRowRequestsOfManyStreamsFillAGroup) {
  const auto work = Staged();
  std::map<uint64_t, uint64_t> expected;
  for (uint64_t stream = 0; stream < 6; ++stream) {
    const auto id = Open(work);
    for (uint64_t step = 0; step < 2; ++step) {
      const uint64_t request = 10 * stream + step;
      AskOne(id, request, step, 100 + request);
      expected[request] = 100 + request;
    }
  }
  FinishAll();
  EXPECT_EQ(device_.finishes, 3);
  EXPECT_EQ(device_.rows, 12u);
  EXPECT_EQ(Samples(), expected);
  ExpectNothingLeft();
}

TEST_F(JoinTest, TheEarliestStepsGoTogether) {
  const auto work = Staged();
  std::vector<uint64_t> prepared;
  work->on_compute = [&](uint64_t, uint64_t sample) {
    prepared.push_back(sample);
  };
  const auto a = Open(work), b = Open(work), c = Open(work);
  AskOne(a, 1, 5, 5);
  AskOne(a, 2, 1, 1);
  AskOne(b, 1, 3, 3);
  AskOne(b, 2, 6, 6);
  AskOne(c, 1, 4, 4);
  EXPECT_EQ(RunAll(4), 4);
  EXPECT_THAT(prepared, UnorderedElementsAre(1, 3, 4, 5));
  FinishAll();
  sink_->Take();
  ExpectNothingLeft();
}

TEST_F(JoinTest, AStreamsGroupsOfAStageCountAsOne) {
  const auto id = Open(Staged());  // three unsent groups
  for (uint64_t request = 1; request <= 16; ++request)
    AskOne(id, request, request, request);
  FinishAll();
  EXPECT_EQ(device_.finishes, 3);
  EXPECT_EQ(sink_->size(), 12u);
  EXPECT_EQ(Samples().size(), 12u);  // read
  FinishAll();
  EXPECT_EQ(Samples().size(), 4u);
  ExpectNothingLeft();
}

TEST_F(JoinTest, ALargeAskIsFilledUp) {
  const auto work = Staged();
  const auto a = Open(work), b = Open(work);
  ASSERT_TRUE(scheduler_.Ask(a, MakeRequest(1, 0, 0, 0, 6)).ok());
  ASSERT_TRUE(scheduler_.Ask(b, MakeRequest(1, 0, 1, 10, 6)).ok());
  FinishAll();
  EXPECT_EQ(device_.finishes, 3);
  std::multiset<size_t> sizes;
  for (const FinishedGroup& group : sink_->Take())
    sizes.insert(group.rows.size());
  EXPECT_THAT(sizes, ElementsAre(2, 2, 4, 4));
  ExpectNothingLeft();
}

TEST_F(JoinTest, SharedMemoriesJoinWithEachOtherAndWithBuffers) {
  const auto work = Staged();
  const auto a = Open(work), b = Open(work);
  const auto one = std::make_shared<FakeMemory>(3),
             two = std::make_shared<FakeMemory>(8);
  AskOne(a, 1, 0, 500);
  ASSERT_TRUE(
      scheduler_.Ask(a, Placed(MakeRequest(2, 0, 0, 10, 1), one, {2}, Lease()))
          .ok());
  ASSERT_TRUE(
      scheduler_
          .Ask(b, Placed(MakeRequest(1, 0, 0, 20, 2), two, {7, 0}, Lease()))
          .ok());
  FinishAll();
  EXPECT_EQ(device_.finishes, 1);
  EXPECT_EQ(one->At(2), 10u);
  EXPECT_EQ(one->At(1), kUntouched);
  EXPECT_EQ(two->At(7), 20u);
  EXPECT_EQ(two->At(0), 21u);
  EXPECT_EQ(two->At(1), kUntouched);
  for (const FinishedGroup& group : sink_->Take())
    EXPECT_EQ(group.placed, group.payload.empty());
  EXPECT_EQ(one.use_count(), 1);
  ExpectNothingLeft();
}

TEST_F(JoinTest, WhatIsNotAlikeGoesByItself) {
  const auto work = Staged();
  AskOne(Open(work), 1, 0, 1);
  AskOne(Open(Staged()), 2, 0, 2);     // another end of the pipeline
  AskOne(Open(Staged("b")), 3, 0, 3);  // another job
  ASSERT_TRUE(scheduler_
                  .Ask(Open(work),
                       Placed(MakeRequest(4, 0, 0, 4, 1),
                              std::make_shared<FakeMemory>(1, 0), {0}, Lease()))
                  .ok());
  FinishAll();
  EXPECT_EQ(device_.finishes, 4);
  EXPECT_EQ(sink_->Take().size(), 4u);
  ExpectNothingLeft();
}

TEST_F(JoinTest, AnErrorIsItsAsksOnly) {
  const auto work = Staged();
  work->bad_sample = 2;
  const auto a = Open(work), b = Open(work);
  AskOne(a, 1, 0, 1);
  const auto memory = std::make_shared<FakeMemory>(1);
  ASSERT_TRUE(
      scheduler_
          .Ask(b, Placed(MakeRequest(2, 0, 0, 2, 1), memory, {0}, Lease()))
          .ok());
  AskOne(a, 3, 0, 3);
  RunAll();
  // It is answered at once, and none of it is written.
  auto groups = sink_->Take();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].request_id, 2u);
  EXPECT_TRUE(absl::IsDataLoss(groups[0].status));
  EXPECT_EQ(ended_, 1);
  EXPECT_TRUE(device_.FinishOne());
  EXPECT_EQ(memory->At(0), kUntouched);
  const auto samples = Samples();
  EXPECT_EQ(samples, (std::map<uint64_t, uint64_t>{{1, 1}, {3, 3}}));
  ExpectNothingLeft();
}

TEST_F(JoinTest, AnErrorOfTheStageIsOfTheRowsThatItNames) {
  const auto work = Staged();
  const auto a = Open(work), b = Open(work);
  AskOne(a, 1, 0, 1);
  AskOne(b, 2, 0, 2);
  AskOne(a, 3, 1, 3);
  RunAll();
  device_.FinishRows({absl::OkStatus(), DataLoss("row 1"), absl::OkStatus()});
  for (const FinishedGroup& group : sink_->Take())
    EXPECT_EQ(absl::IsDataLoss(group.status), group.request_id == 2)
        << group.request_id;
  ExpectNothingLeft();
}

TEST_F(JoinTest, WithdrawnAtEveryPointTheOthersGoOn) {
  for (const bool closes : {false, true}) {
    for (int rows = 0; rows <= 4; ++rows) {
      begun_ = ended_ = 0;
      const auto work = Staged();
      const auto a = Open(work), b = Open(work);
      const auto memory = std::make_shared<FakeMemory>(2);
      AskOne(a, 1, 0, 1);
      ASSERT_TRUE(scheduler_
                      .Ask(b, Placed(MakeRequest(2, 0, 0, 2, 2), memory, {0, 1},
                                     Lease()))
                      .ok());
      AskOne(a, 3, 0, 3);
      EXPECT_EQ(RunAll(rows), rows);
      if (closes)
        scheduler_.CloseStream(b);
      else
        scheduler_.Cancel(b, 2);
      FinishAll();
      EXPECT_EQ(device_.stages, 0);
      EXPECT_EQ(ended_, 1) << rows;
      EXPECT_EQ(memory.use_count(), 1);
      size_t of_a = 0, of_b = 0;
      for (const FinishedGroup& group : sink_->Take())
        (group.request_id == 2 ? of_b : of_a) += group.rows.size();
      EXPECT_EQ(of_a, 2u) << rows;
      // All of it or nothing, and nothing is written that was withdrawn.
      EXPECT_TRUE(of_b == 0 || of_b == 2);
      EXPECT_EQ(memory->At(0), of_b == 0 ? kUntouched : 2u);
      EXPECT_EQ(memory->At(1), of_b == 0 ? kUntouched : 3u);
      if (rows < 2) {
        EXPECT_EQ(of_b, 0u);
      }
      ExpectNothingLeft();
    }
  }
}

TEST_F(JoinTest, AWithdrawalMayCompleteAStage) {
  const auto work = Staged();
  const auto a = Open(work), b = Open(work);
  AskOne(a, 1, 0, 1);
  AskOne(b, 2, 1, 2);
  EXPECT_EQ(RunAll(1), 1);
  EXPECT_EQ(device_.finishes, 0);
  scheduler_.Cancel(b, 2);
  EXPECT_EQ(RunAll(), 0);
  EXPECT_EQ(device_.finishes, 1);
  EXPECT_TRUE(device_.FinishOne());
  EXPECT_EQ(Samples().size(), 1u);
  ExpectNothingLeft();
}

TEST_F(JoinTest, WhatTheDeviceRefusedGoesWithWhatIsLeft) {
  const auto work = Staged();
  const auto a = Open(work), b = Open(work);
  AskOne(a, 1, 0, 1);
  AskOne(b, 2, 1, 2);
  device_.on_refuse = [&] { scheduler_.Cancel(a, 1); };
  device_.refuse = true;
  FinishAll();
  EXPECT_EQ(device_.rows, 1u);
  EXPECT_EQ(Samples(), (std::map<uint64_t, uint64_t>{{2, 2}}));
  AskOne(a, 3, 0, 3);
  AskOne(b, 4, 1, 4);
  device_.on_refuse = [&] { AskOne(a, 5, 0, 5); };
  device_.refuse = true;
  FinishAll();
  EXPECT_EQ(device_.finishes, 2);
  EXPECT_EQ(Samples().size(), 3u);
  ExpectNothingLeft();
}

TEST_F(JoinTest, WhatIsBegunWhenTheSchedulerEndsIsGivenBack) {
  const auto work = Staged();
  {
    Scheduler scheduler(Options(), &pool_, wake_, clock_);
    const auto a = scheduler.OpenStream(work, sink_),
               b = scheduler.OpenStream(work, sink_);
    ASSERT_TRUE(a.ok() && b.ok());
    ASSERT_TRUE(scheduler.Ask(*a, MakeRequest(1, 0, 0, 1, 1)).ok());
    ASSERT_TRUE(scheduler.Ask(*b, MakeRequest(2, 0, 1, 2, 1)).ok());
    EXPECT_TRUE(scheduler.RunOne(nullptr));
    EXPECT_EQ(device_.stages, 1);
  }
  EXPECT_EQ(work.use_count(), 1);
  ExpectNothingLeft();
}

using ReadJoinTest = ReadAheadTest;

TEST_F(ReadJoinTest, RowsThatWereReadGoTogether) {
  FakeDevice device(wake_, 1);
  options_.group_bytes = 8 * (kBig + 8);
  const auto work = std::make_shared<StagedReadingWork>(&device, &storage_);
  // The first one has the only slot until the others have been read.
  Ask(Open(work, sink_), MakeRequest(1, 0, 0, 1000, 1));
  device.WaitOne();
  for (uint64_t stream = 0; stream < 8; ++stream)
    Ask(Open(work, sink_), MakeRequest(1, 0, 1, stream, 1));
  // All rows ahead have been read.
  while (scheduler().stats().bytes_ahead != 8 * kRecordBytes)
    std::this_thread::yield();
  device.FinishOne();
  device.WaitOne();
  device.FinishOne();
  sink_->WaitRows(9);
  EXPECT_EQ(device.finishes, 2);
  EXPECT_EQ(device.rows, 9u);
  scheduler_.reset();
}

// Uses real threads and a device, and withdraws everything at random.
TEST(JoinThreads, SurviveStorms) {
  const auto wake = std::make_shared<WakeSignal>();
  BufferPool pool(4 << 20, wake);
  FakeDevice device(wake, 3);
  std::vector<std::shared_ptr<StagedWork>> works;
  for (const char* key : {"a", "b"})
    works.push_back(std::make_shared<StagedWork>(key, &device));
  works[1]->bad_sample = 105;
  Storm(
      {.rounds = 40, .requests = 20, .most_rows = 3, .slots = true},
      [&](int round) { return works[round % 2]; }, &pool, wake, &device)
      .Run();
}

}  // namespace
}  // namespace leat::worker
