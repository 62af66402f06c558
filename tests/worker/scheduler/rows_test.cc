// SPDX-License-Identifier: Apache-2.0
//
// A thread takes as many rows of one group at a time as it computes in 50 µs.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/scheduler/fake_rows.h"
#include "worker/scheduler/scheduler.h"

namespace leat::worker {
namespace {

using std::chrono::microseconds;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::Le;

class RowsAtOnceTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kRows = 1024;

  RowsAtOnceTest() {
    options_.threads = 0;
    options_.group_bytes = kRows * 108;
  }
  std::shared_ptr<FakeWork> Job(Duration row_time) {
    auto work = std::make_shared<FakeWork>("job");
    work->on_compute = [this, row_time](uint64_t, uint64_t) {
      clock_.Advance(row_time);
      ++computed_;
    };
    return work;
  }
  // Returns the number of rows of each RunOne in one step.
  std::vector<int> Step(Scheduler& scheduler, Scheduler::StreamId id,
                        uint64_t step) {
    EXPECT_TRUE(scheduler.Ask(id, MakeRequest(step, 0, step, 0, kRows)).ok());
    std::vector<int> rows;
    computed_ = 0;
    while (scheduler.RunOne(nullptr))
      if (const int now = std::exchange(computed_, 0); now > 0)
        rows.push_back(now);
    return rows;
  }

  FakeClock clock_;
  std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
  BufferPool pool_{64 << 20, wake_};
  SchedulerOptions options_;
  std::shared_ptr<FakeSink> sink_ = std::make_shared<FakeSink>();
  int computed_ = 0;
};

TEST_F(RowsAtOnceTest, RowsThatTakeLongAreTakenOneByOne) {
  Scheduler scheduler(options_, &pool_, wake_, clock_);
  const auto id = scheduler.OpenStream(Job(microseconds(60)), sink_);
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_THAT(Step(scheduler, *id, 0), Each(1));
}

TEST_F(RowsAtOnceTest, SmallRowsAreTakenForFiftyMicroseconds) {
  Scheduler scheduler(options_, &pool_, wake_, clock_);
  const auto id = scheduler.OpenStream(Job(microseconds(5)), sink_);
  ASSERT_TRUE(id.ok()) << id.status();
  // Until it is known that they are small.
  EXPECT_EQ(Step(scheduler, *id, 0).front(), 1);
  std::vector<int> rows = Step(scheduler, *id, 1);
  rows.pop_back();  // the rest
  EXPECT_THAT(rows, Each(AllOf(Ge(9), Le(10))));
}

TEST_F(RowsAtOnceTest, HoweverSmallTheyAreThereIsALimit) {
  Scheduler scheduler(options_, &pool_, wake_, clock_);
  const auto id = scheduler.OpenStream(Job(Duration(10)), sink_);
  ASSERT_TRUE(id.ok()) << id.status();
  Step(scheduler, *id, 0);
  EXPECT_THAT(Step(scheduler, *id, 1), ElementsAre(256, 256, 256, 256));
}

TEST_F(RowsAtOnceTest, AGroupHasTheErrorOfItsFirstBadRowAndTheNextIsWhole) {
  Scheduler scheduler(options_, &pool_, wake_, clock_);
  const auto job = Job(microseconds(1));
  const auto id = scheduler.OpenStream(job, sink_);
  ASSERT_TRUE(id.ok()) << id.status();
  Step(scheduler, *id, 0);
  sink_->Take();
  job->bad_sample = 77;
  Step(scheduler, *id, 1);
  job->bad_sample = ~uint64_t{0};
  Step(scheduler, *id, 2);
  const auto groups = sink_->Take();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].status.message(), "sample 77 is bad");
  EXPECT_TRUE(groups[1].status.ok()) << groups[1].status;
  ASSERT_EQ(groups[1].payload.size(), kRows * 108u);
  for (uint32_t row = 0; row < kRows; ++row) {
    uint64_t sample = 0;
    std::memcpy(&sample, groups[1].payload.data() + kRows * 100 + row * 8, 8);
    ASSERT_EQ(sample, row);
  }
  EXPECT_EQ(scheduler.stats().row_errors_total, kRows);
}

TEST_F(RowsAtOnceTest, WhatIsWithdrawnMeanwhileIsNotDelivered) {
  Scheduler scheduler(options_, &pool_, wake_, clock_);
  const auto job = Job(microseconds(1));
  const auto id = scheduler.OpenStream(job, sink_);
  ASSERT_TRUE(id.ok()) << id.status();
  Step(scheduler, *id, 0);
  sink_->Take();
  job->on_compute = [&](uint64_t, uint64_t sample) {
    if (sample == 100) scheduler.Cancel(*id, 1);
  };
  Step(scheduler, *id, 1);
  EXPECT_EQ(sink_->size(), 0u);
  EXPECT_EQ(scheduler.stats().rows_queued, 0u);
  EXPECT_TRUE(scheduler.WaitIdle(MonotonicTime()));
  EXPECT_EQ(pool_.buffers_in_use(), 0u);
}

}  // namespace
}  // namespace leat::worker
