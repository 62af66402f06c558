// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/scheduler.h"

#include <atomic>
#include <barrier>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/scheduler/storm.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Checks the layout: field after field.
void ExpectPayload(const FinishedGroup& group, size_t big,
                   const std::vector<uint64_t>& samples) {
  ASSERT_EQ(group.payload.size(), samples.size() * (big + 8));
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(group.payload[i * big], std::byte(samples[i] & 255));
    EXPECT_EQ(group.payload[i * big + big - 1], std::byte(samples[i] & 255));
    uint64_t sample = 0;
    std::memcpy(&sample, group.payload.data() + samples.size() * big + i * 8,
                8);
    EXPECT_EQ(sample, samples[i]);
  }
}

class SchedulerTest : public ::testing::Test {
 protected:
  // Four rows of FakeWork's default size per group; the test's thread computes.
  SchedulerTest() {
    options_.threads = 0;
    options_.group_bytes = 4 * 108;
    options_.max_unsent_groups_per_stream = 3;
  }
  Scheduler& scheduler() {
    if (scheduler_ == nullptr) {
      pool_ = std::make_unique<BufferPool>(pool_bytes_, wake_);
      scheduler_ =
          std::make_unique<Scheduler>(options_, pool_.get(), wake_, clock_);
    }
    return *scheduler_;
  }
  // Returns a job whose rows take `row_time` of the fake clock, and are logged.
  std::shared_ptr<FakeWork> Job(
      const std::string& key, Duration row_time = std::chrono::milliseconds(1),
      size_t big = 100) {
    auto work = std::make_shared<FakeWork>(key, big);
    work->on_compute = [this, row_time, key](uint64_t, uint64_t sample) {
      clock_.Advance(row_time);
      log_.push_back(sample);
      time_[key] += row_time;
    };
    return work;
  }
  Scheduler::StreamId Open(std::shared_ptr<const RowWork> work,
                           const std::shared_ptr<FakeSink>& sink) {
    auto id = scheduler().OpenStream(std::move(work), sink);
    EXPECT_TRUE(id.ok()) << id.status();
    return *id;
  }
  int RunAll(int limit = 1'000'000) {
    int rows = 0;
    while (rows < limit && scheduler().RunOne(nullptr)) ++rows;
    return rows;
  }
  void ExpectAllBack() {
    EXPECT_EQ(pool_->buffers_in_use(), 0u);
    EXPECT_EQ(pool_->bytes_in_use(), 0u);
    EXPECT_EQ(scheduler().stats().rows_queued, 0u);
  }

  SchedulerOptions options_;
  size_t pool_bytes_ = 64 << 20;
  FakeClock clock_;
  std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
  std::vector<uint64_t> log_;
  std::map<std::string, Duration> time_;
  std::shared_ptr<FakeSink> sink_ = std::make_shared<FakeSink>();
  std::unique_ptr<BufferPool> pool_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, GroupsRowsAndLaysThemOutFieldAfterField) {
  const auto id = Open(Job("a"), sink_);
  ASSERT_TRUE(scheduler().Ask(id, MakeRequest(5, 0, 0, 1000, 6)).ok());
  EXPECT_EQ(RunAll(), 6);
  const auto groups = sink_->Take();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].request_id, 5u);
  EXPECT_NE(groups[0].group_id, groups[1].group_id);
  EXPECT_THAT(groups[0].rows, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(groups[1].rows, ElementsAre(4, 5));
  ExpectPayload(groups[0], 100, {1000, 1001, 1002, 1003});
  ExpectPayload(groups[1], 100, {1004, 1005});
}

TEST_F(SchedulerTest, ARowLargerThanAGroupGoesAlone) {
  options_.group_bytes = 10;
  const auto id = Open(Job("a"), sink_);
  ASSERT_TRUE(scheduler().Ask(id, MakeRequest(1, 0, 0, 0, 3)).ok());
  RunAll();
  EXPECT_EQ(sink_->size(), 3u);
}

TEST_F(SchedulerTest, TheEarliestStepGoesFirstWhateverTheOrderOfAsking) {
  const auto id = Open(Job("a"), sink_);
  sink_->KeepNothing();
  ASSERT_TRUE(scheduler().Ask(id, MakeRequest(1, 1, 0, 30, 2)).ok());
  ASSERT_TRUE(scheduler().Ask(id, MakeRequest(2, 0, 9, 20, 2)).ok());
  ASSERT_TRUE(scheduler().Ask(id, MakeRequest(3, 0, 8, 10, 2)).ok());
  RunAll();
  EXPECT_THAT(log_, ElementsAre(10, 11, 20, 21, 30, 31));
}

TEST_F(SchedulerTest, AnEarlierStepOvertakesAGroupInWork) {
  const auto id = Open(Job("a"), sink_);
  ASSERT_TRUE(scheduler().Ask(id, MakeRequest(1, 0, 5, 50, 4)).ok());
  RunAll(1);
  ASSERT_TRUE(scheduler().Ask(id, MakeRequest(2, 0, 4, 40, 2)).ok());
  RunAll();
  EXPECT_THAT(log_, ElementsAre(50, 40, 41, 51, 52, 53));
}

TEST_F(SchedulerTest, JobsShareTimeNotRows) {
  sink_->KeepNothing();
  const auto slow = Open(Job("slow", std::chrono::milliseconds(9)), sink_);
  const auto fast = Open(Job("fast", std::chrono::milliseconds(1)), sink_);
  ASSERT_TRUE(scheduler().Ask(slow, MakeRequest(1, 0, 0, 0, 5000)).ok());
  ASSERT_TRUE(scheduler().Ask(fast, MakeRequest(1, 0, 0, 0, 5000)).ok());
  RunAll(3000);
  const double ratio = std::chrono::duration<double>(time_["slow"]) /
                       std::chrono::duration<double>(time_["fast"]);
  EXPECT_NEAR(ratio, 1, 0.1);
}

TEST_F(SchedulerTest, AJobOfManyStreamsGetsNoMoreThanAJobOfOne) {
  sink_->KeepNothing();
  const auto many = Job("many"), one = Job("one");
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(
        scheduler().Ask(Open(many, sink_), MakeRequest(1, 0, 0, 0, 500)).ok());
  ASSERT_TRUE(
      scheduler().Ask(Open(one, sink_), MakeRequest(1, 0, 0, 0, 500)).ok());
  RunAll(900);
  EXPECT_NEAR(static_cast<double>(time_["one"].count()) /
                  static_cast<double>(time_["many"].count()),
              1, 0.1);
}

TEST_F(SchedulerTest, AJobThatWasIdleGetsNoCreditForIt) {
  sink_->KeepNothing();
  const auto a = Open(Job("a"), sink_), b = Open(Job("b"), sink_);
  ASSERT_TRUE(scheduler().Ask(a, MakeRequest(1, 0, 0, 0, 2000)).ok());
  RunAll(1000);
  ASSERT_TRUE(scheduler().Ask(b, MakeRequest(1, 0, 0, 0, 2000)).ok());
  const Duration before = time_["a"];
  RunAll(400);
  EXPECT_NEAR(std::chrono::duration<double>(time_["a"] - before).count(),
              std::chrono::duration<double>(time_["b"]).count(), 0.03);
}

TEST_F(SchedulerTest, IteratorsFarApartShareAJobsTime) {
  sink_->KeepNothing();
  const auto job = Job("a");
  const auto early = Open(job, sink_), late = Open(job, sink_);
  ASSERT_TRUE(scheduler().Ask(early, MakeRequest(1, 0, 0, 0, 1000)).ok());
  ASSERT_TRUE(scheduler().Ask(late, MakeRequest(1, 7, 0, 100'000, 1000)).ok());
  RunAll(200);
  const auto of_late = std::count_if(log_.begin(), log_.end(),
                                     [](uint64_t s) { return s >= 100'000; });
  EXPECT_NEAR(of_late, 100, 5);
}

TEST_F(SchedulerTest, HostsOfOneRunAdvanceTogether) {
  sink_->KeepNothing();
  const auto job = Job("a");
  const auto ahead = Open(job, sink_), behind = Open(job, sink_);
  ASSERT_TRUE(scheduler().Ask(ahead, MakeRequest(1, 0, 12, 1200, 8)).ok());
  ASSERT_TRUE(scheduler().Ask(behind, MakeRequest(1, 0, 11, 1100, 8)).ok());
  ASSERT_TRUE(scheduler().Ask(behind, MakeRequest(2, 0, 13, 1300, 8)).ok());
  RunAll();
  ASSERT_EQ(log_.size(), 24u);
  EXPECT_TRUE(std::is_sorted(log_.begin(), log_.end()))
      << testing::PrintToString(log_);
}

TEST_F(SchedulerTest, AStreamThatIsNotReadStopsAndNobodyElseWaits) {
  const auto job = Job("a");
  const auto reading = std::make_shared<FakeSink>();
  reading->KeepNothing();
  const auto stuck = Open(job, sink_), other = Open(job, reading);
  ASSERT_TRUE(scheduler().Ask(stuck, MakeRequest(1, 0, 0, 0, 1000)).ok());
  ASSERT_TRUE(scheduler().Ask(other, MakeRequest(1, 0, 1, 5000, 400)).ok());
  EXPECT_EQ(RunAll(), 3 * 4 + 400);
  EXPECT_EQ(sink_->size(), 3u);
  EXPECT_EQ(pool_->buffers_in_use(), 3u);
  sink_->Take();  // it reads: three more groups
  EXPECT_EQ(RunAll(), 3 * 4);
  scheduler().CloseStream(stuck);
  sink_->Take();
  ExpectAllBack();
}

TEST_F(SchedulerTest, StuckStreamsLeaveAQuarterOfThePoolToOthers) {
  pool_bytes_ = 8 * 64 * 1024;  // eight buffers
  options_.max_unsent_groups_per_stream = 100;
  const auto stuck = Open(Job("a"), sink_);
  ASSERT_TRUE(scheduler().Ask(stuck, MakeRequest(1, 0, 0, 0, 1000)).ok());
  EXPECT_EQ(RunAll(), 6 * 4);
  const auto reading = std::make_shared<FakeSink>();
  reading->KeepNothing();
  const auto other = Open(Job("b"), reading);
  ASSERT_TRUE(scheduler().Ask(other, MakeRequest(1, 0, 0, 0, 100)).ok());
  EXPECT_EQ(RunAll(), 100);
}

TEST_F(SchedulerTest, CancelForgetsWhatHasNotBegun) {
  const auto id = Open(Job("a"), sink_);
  ASSERT_TRUE(scheduler().Ask(id, MakeRequest(1, 0, 0, 10, 10)).ok());
  ASSERT_TRUE(scheduler().Ask(id, MakeRequest(2, 0, 1, 20, 4)).ok());
  RunAll(5);  // one group complete, another begun
  scheduler().Cancel(id, 1);
  scheduler().Cancel(id, 77);
  RunAll();
  const auto groups = sink_->Take();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].request_id, 1u);
  EXPECT_EQ(groups[1].request_id, 2u);
  EXPECT_TRUE(scheduler().Ask(id, MakeRequest(1, 0, 0, 10, 1)).ok());
}

TEST_F(SchedulerTest, ClosingAStreamGivesItsBuffersBack) {
  const auto id = Open(Job("a"), sink_);
  ASSERT_TRUE(scheduler().Ask(id, MakeRequest(1, 0, 0, 0, 10)).ok());
  RunAll(6);
  scheduler().CloseStream(id);
  scheduler().CloseStream(id);
  EXPECT_FALSE(scheduler().RunOne(nullptr));
  EXPECT_TRUE(
      absl::IsNotFound(scheduler().Ask(id, MakeRequest(2, 0, 0, 0, 1))));
  sink_->Take();
  ExpectAllBack();
}

TEST_F(SchedulerTest, AFailedRowFailsItsGroupByTheFirstRowsError) {
  const auto job = Job("a");
  job->bad_sample = 2;
  const auto id = Open(job, sink_);
  ASSERT_TRUE(scheduler().Ask(id, MakeRequest(1, 0, 0, 0, 8)).ok());
  RunAll();
  const auto groups = sink_->Take();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_TRUE(absl::IsDataLoss(groups[0].status));
  EXPECT_THAT(groups[0].rows, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(groups[0].owner, nullptr);
  EXPECT_TRUE(groups[1].status.ok());
  EXPECT_EQ(pool_->buffers_in_use(), 1u);
}

TEST_F(SchedulerTest, BoundsAreKept) {
  options_.max_rows_per_stream = 10;
  options_.max_rows_total = 15;
  options_.max_streams = 2;
  const auto job = Job("a");
  const auto a = Open(job, sink_), b = Open(job, sink_);
  EXPECT_TRUE(
      absl::IsResourceExhausted(scheduler().OpenStream(job, sink_).status()));
  EXPECT_TRUE(scheduler().Ask(a, MakeRequest(1, 0, 0, 0, 10)).ok());
  const absl::Status full = scheduler().Ask(a, MakeRequest(2, 0, 0, 0, 1));
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(Message(full), HasSubstr("limit is 10"));
  EXPECT_TRUE(absl::IsResourceExhausted(
      scheduler().Ask(b, MakeRequest(1, 0, 0, 0, 6))));
  EXPECT_TRUE(scheduler().Ask(b, MakeRequest(1, 0, 0, 0, 5)).ok());
  RunAll(1);
  EXPECT_TRUE(scheduler().Ask(a, MakeRequest(2, 0, 0, 0, 1)).ok());
}

TEST_F(SchedulerTest, MalformedAsksAreRefused) {
  const auto id = Open(Job("a"), sink_);
  EXPECT_TRUE(absl::IsInvalidArgument(scheduler().Ask(id, {.request_id = 1})));
  EXPECT_TRUE(absl::IsInvalidArgument(
      scheduler().Ask(id, {.request_id = 1, .rows = {1, 2}, .samples = {1}})));
  ASSERT_TRUE(scheduler().Ask(id, MakeRequest(1, 0, 0, 0, 1)).ok());
  EXPECT_TRUE(
      absl::IsInvalidArgument(scheduler().Ask(id, MakeRequest(1, 0, 0, 0, 1))));
}

TEST_F(SchedulerTest, ARowThatNoBufferHoldsIsRefusedAtOnce) {
  pool_bytes_ = 1 << 20;
  const auto job = Job("a", std::chrono::milliseconds(1), 900'000);
  const absl::Status status = scheduler().OpenStream(job, sink_).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
}

TEST_F(SchedulerTest, SteadyWorkAllocatesNoBuffers) {
  sink_->KeepNothing();
  const auto id = Open(Job("a"), sink_);
  for (uint64_t step = 0; step < 100; ++step) {
    ASSERT_TRUE(scheduler().Ask(id, MakeRequest(step, 0, step, 0, 40)).ok());
    RunAll();
  }
  EXPECT_LE(pool_->allocations_total(), 3u);
  EXPECT_EQ(scheduler().stats().rows_total, 4000u);
  ExpectAllBack();
}

TEST_F(SchedulerTest, LatencyRunsFromTheRequestToTheBuffersReturn) {
  const auto id = Open(Job("a", std::chrono::milliseconds(5)), sink_);
  ASSERT_TRUE(scheduler().Ask(id, MakeRequest(1, 0, 0, 0, 4)).ok());
  RunAll();
  clock_.Advance(std::chrono::milliseconds(80));
  sink_->Take();
  const auto summary = Histogram::Summarize({}, scheduler().stats().latency);
  EXPECT_EQ(summary.count, 4u);
  EXPECT_NEAR(summary.mean_ms, 100, 0.1);
  EXPECT_NEAR(summary.p50_ms, 100, 20);
}

// Uses real threads: every row comes exactly once, and every buffer back,
// whatever is cancelled and closed meanwhile.
TEST(SchedulerThreads, SurviveStorms) {
  const auto wake = std::make_shared<WakeSignal>();
  BufferPool pool(4 << 20, wake);
  Storm(
      {},
      [](int round) {
        return std::make_shared<FakeWork>(std::string(1, "abcd"[round % 3]));
      },
      &pool, wake)
      .Run();
}

TEST(SchedulerGroups, AreAMultipleOfWhatADeviceTakesAtOnce) {
  const auto wake = std::make_shared<WakeSignal>();
  BufferPool pool(16 << 20, wake);
  for (const auto& [at_once, group] :
       {std::pair<size_t, size_t>{7, 21}, {25, 25}, {40, 26}}) {
    Scheduler scheduler(
        {.threads = 0, .max_rows_per_group = 26, .rows_at_once = at_once},
        &pool, wake, Clock::Real());
    const auto sink = std::make_shared<FakeSink>();
    const auto id = scheduler.OpenStream(std::make_shared<FakeWork>("a"), sink);
    ASSERT_TRUE(id.ok());
    ASSERT_TRUE(scheduler.Ask(*id, MakeRequest(1, 0, 0, 0, 30)).ok());
    while (scheduler.RunOne(nullptr)) {
    }
    const std::vector<FinishedGroup> groups = sink->Take();
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].rows.size(), group) << at_once;
  }
}

// The work's own bound of a group is kept, and rounded like the scheduler's.
TEST(SchedulerGroups, HaveNoMoreRowsThanTheWorkTakes) {
  struct Work : FakeWork, GroupLimits {
    explicit Work(size_t rows) : FakeWork("a"), most(rows) {}
    const GroupLimits& groups() const override { return *this; }
    size_t most_rows() const override { return most; }
    const size_t most;
  };
  const auto wake = std::make_shared<WakeSignal>();
  BufferPool pool(16 << 20, wake);
  for (const auto& [most, group] :
       {std::pair<size_t, size_t>{1, 1}, {6, 6}, {15, 14}, {500, 21}}) {
    Scheduler scheduler(
        {.threads = 0, .max_rows_per_group = 26, .rows_at_once = 7}, &pool,
        wake, Clock::Real());
    const auto sink = std::make_shared<FakeSink>();
    const auto id = scheduler.OpenStream(std::make_shared<Work>(most), sink);
    ASSERT_TRUE(id.ok());
    ASSERT_TRUE(scheduler.Ask(*id, MakeRequest(1, 0, 0, 0, 30)).ok());
    while (sink->size() == 0) ASSERT_TRUE(scheduler.RunOne(nullptr));
    EXPECT_EQ(sink->Take()[0].rows.size(), group) << most;
  }
}

TEST(SchedulerThreads, OneStreamKeepsThemAllBusy) {
  constexpr int kThreads = 16;
  const auto wake = std::make_shared<WakeSignal>();
  BufferPool pool(16 << 20, wake);
  Scheduler scheduler({.threads = kThreads,
                       .max_rows_per_group = 3,
                       .max_unsent_groups_per_stream = 2},
                      &pool, wake, Clock::Real());
  const auto sink = std::make_shared<FakeSink>();
  sink->KeepNothing();
  const auto work = std::make_shared<FakeWork>("a");
  std::barrier everybody(kThreads);
  work->on_compute = [&](uint64_t, uint64_t) { everybody.arrive_and_wait(); };
  const auto id = scheduler.OpenStream(work, sink);
  ASSERT_TRUE(id.ok());
  ASSERT_TRUE(scheduler.Ask(*id, MakeRequest(1, 0, 0, 0, kThreads)).ok());
  sink->WaitRows(kThreads);  // none would come if one thread had no row
}

}  // namespace
}  // namespace leat::worker
