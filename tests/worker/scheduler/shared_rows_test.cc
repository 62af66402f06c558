// SPDX-License-Identifier: Apache-2.0
//
// Rows that several streams request: computed once, taken from the thread that
// computes them or from the window, and never another row's bytes.
#include "worker/scheduler/shared_rows.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/scheduler/fake_rows.h"
#include "worker/scheduler/scheduler.h"

namespace leat::worker {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Claim = SharedRows::Claim;

constexpr size_t kBytes = 16;

class SharedRowsTest : public ::testing::Test {
 protected:
  explicit SharedRowsTest(uint64_t rows = 4) : budget_(rows * kBytes) {
    rows_.AddStream();
    rows_.AddStream();
  }
  Claim Begin(uint64_t sample, std::vector<std::byte>* row) {
    const std::span<std::byte> outputs[] = {*row};
    return rows_.Begin({.sample = sample}, outputs, [] {
      ADD_FAILURE() << "nobody computes the row";
      return nullptr;
    });
  }
  void End(uint64_t sample, std::vector<std::byte>* row, bool sound = true) {
    std::fill(row->begin(), row->end(), std::byte(sample));
    const std::span<std::byte> outputs[] = {*row};
    rows_.End({.sample = sample}, {.work = nullptr,
                                   .status = absl::OkStatus(),
                                   .sound = sound,
                                   .outputs = outputs});
  }
  // Returns how many of the samples had to be computed.
  int Compute(uint64_t first, uint64_t samples) {
    int computed = 0;
    for (uint64_t sample = first; sample < first + samples; ++sample) {
      std::vector<std::byte> row(kBytes);
      if (Begin(sample, &row) == Claim::kCompute) {
        ++computed;
        End(sample, &row);
      }
      EXPECT_THAT(row, testing::Each(std::byte(sample)));
    }
    return computed;
  }

  SharedRowsBudget budget_;
  SharedRows rows_{kBytes, &budget_};
};

TEST_F(SharedRowsTest, NothingIsKeptUntilARowIsAskedForTwice) {
  EXPECT_EQ(Compute(0, 3), 3);
  EXPECT_EQ(budget_.bytes, 0u);
  EXPECT_EQ(Compute(0, 1), 1);
  EXPECT_EQ(Compute(3, 2), 2);
  EXPECT_EQ(budget_.bytes, 3 * kBytes);
  EXPECT_EQ(Compute(3, 2), 0);
}

TEST_F(SharedRowsTest, ARowGoesWhenAllStreamsHaveIt) {
  Compute(0, 1), Compute(0, 1);
  EXPECT_EQ(budget_.bytes, kBytes);
  EXPECT_EQ(Compute(0, 1), 0);
  EXPECT_EQ(budget_.bytes, 0u);
  EXPECT_EQ(Compute(0, 1), 1);
}

TEST_F(SharedRowsTest, TheOldestRowGoesWhenTheWindowIsFull) {
  Compute(0, 1), Compute(0, 1);
  EXPECT_EQ(Compute(1, 4), 4);
  EXPECT_EQ(budget_.bytes, 4 * kBytes);
  EXPECT_EQ(Compute(1, 4), 0);
  EXPECT_EQ(Compute(0, 1), 1);
}

TEST_F(SharedRowsTest, WindowsOfOneWorkerHaveEqualParts) {
  SharedRows other(kBytes, &budget_);
  ++budget_.windows;
  Compute(0, 1), Compute(0, 1);
  Compute(1, 4);
  EXPECT_EQ(budget_.bytes, 2 * kBytes);
  --budget_.windows;
}

TEST_F(SharedRowsTest, StreamsThatAskForDifferentRowsKeepNone) {
  Compute(0, 1), Compute(0, 1);
  Compute(1, SharedRows::kIdleRows - 1);
  EXPECT_GT(budget_.bytes, 0u);
  Compute(10'000, 2);
  EXPECT_EQ(budget_.bytes, 0u);
  EXPECT_EQ(budget_.windows, 0u);
  // Too long ago for the window: no reason to begin again.
  Compute(1, 1);
  EXPECT_EQ(budget_.windows, 0u);
}

TEST_F(SharedRowsTest, OneStreamAloneKeepsNothing) {
  Compute(0, 1), Compute(0, 1);
  rows_.RemoveStream();
  EXPECT_EQ(budget_.bytes, 0u);
  std::vector<std::byte> row(kBytes);
  EXPECT_EQ(Begin(0, &row), Claim::kAlone);
}

TEST_F(SharedRowsTest, TheRowOfABadSampleIsNotKept) {
  Compute(0, 1), Compute(0, 1);
  const uint64_t before = budget_.bytes;
  std::vector<std::byte> row(kBytes);
  ASSERT_EQ(Begin(1, &row), Claim::kCompute);
  End(1, &row, /*sound=*/false);
  EXPECT_EQ(budget_.bytes, before);
  EXPECT_EQ(Begin(1, &row), Claim::kCompute);
  End(1, &row);
}

class LargeWindowTest : public SharedRowsTest {
 protected:
  LargeWindowTest() : SharedRowsTest(1'000'000) {}
};

TEST_F(LargeWindowTest, WhatIsRememberedHasABound) {
  Compute(0, 1), Compute(0, 1);
  for (uint64_t first = 1; first < 2 * SharedRows::kMostEntries;
       first += 1000) {
    Compute(first, 1000);
    EXPECT_EQ(Compute(first + 999, 1), 0);
  }
  EXPECT_LE(budget_.bytes, SharedRows::kMostEntries * kBytes);
  EXPECT_EQ(Compute(1, 1), 1);
}

// A scheduler with works whose rows are equal.
class SharedStreamsTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kRows = 200;

  std::shared_ptr<SharedWork> Job(const std::string& name,
                                  Duration row_time = milliseconds(1)) {
    auto work = std::make_shared<SharedWork>(name, Digest{1});
    work->on_compute = [this, row_time](uint64_t, uint64_t sample) {
      ++computed_;
      if (on_row) on_row(sample);
      if (options_.threads > 0)
        std::this_thread::sleep_for(row_time);
      else
        clock_.Advance(row_time);
    };
    return work;
  }
  void Start(int threads) {
    options_.threads = threads;
    const Clock* const clock = threads > 0 ? &Clock::Real() : &clock_;
    scheduler_ = std::make_unique<Scheduler>(options_, &pool_, wake_, *clock);
  }
  Scheduler::StreamId Open(std::shared_ptr<const RowWork> work,
                           std::shared_ptr<GroupSink> sink) {
    const auto id = scheduler_->OpenStream(std::move(work), std::move(sink));
    EXPECT_TRUE(id.ok()) << id.status();
    return *id;
  }
  void Ask(Scheduler::StreamId id, uint32_t rows = kRows) {
    EXPECT_TRUE(scheduler_->Ask(id, MakeRequest(1, 0, 0, 0, rows)).ok());
  }
  void RunAll() {
    while (scheduler_->RunOne(nullptr)) {
    }
  }
  static void ExpectRows(FakeSink& sink, uint32_t rows = kRows) {
    std::vector<bool> seen(rows);
    for (const FinishedGroup& group : sink.Take()) {
      ASSERT_TRUE(group.status.ok()) << group.status;
      const std::byte* samples = group.payload.data() + group.rows.size() * 100;
      for (size_t i = 0; i < group.rows.size(); ++i) {
        uint64_t sample = 0;
        std::memcpy(&sample, samples + i * 8, 8);
        EXPECT_EQ(sample, group.rows[i]);
        EXPECT_THAT(group.payload.subspan(i * 100, 100),
                    testing::Each(std::byte(sample)));
        seen[group.rows[i]] = true;
      }
    }
    EXPECT_THAT(seen, testing::Each(true));
  }

  FakeClock clock_;
  std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
  BufferPool pool_{64 << 20, wake_};
  SchedulerOptions options_;
  std::atomic<int> computed_{0};
  std::function<void(uint64_t)> on_row;
  std::vector<std::shared_ptr<FakeSink>> sinks_ = {
      std::make_shared<FakeSink>(), std::make_shared<FakeSink>(),
      std::make_shared<FakeSink>(), std::make_shared<FakeSink>()};
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SharedStreamsTest, FourTrainersCostOne) {
  Start(4);
  const auto work = Job("job");
  std::vector<Scheduler::StreamId> ids;
  for (const auto& sink : sinks_) ids.push_back(Open(work, sink));
  for (const Scheduler::StreamId id : ids) Ask(id);
  for (const auto& sink : sinks_) sink->WaitRows(kRows);
  for (const auto& sink : sinks_) ExpectRows(*sink);
  EXPECT_LE(computed_, kRows * 11 / 10);
  ASSERT_TRUE(scheduler_->WaitIdle(MonotonicTime::max()));
  const Scheduler::Stats stats = scheduler_->stats();
  EXPECT_EQ(stats.rows_total, 4 * kRows);
  EXPECT_EQ(stats.rows_shared_total, 4 * kRows - computed_);
  ASSERT_EQ(stats.jobs.size(), 1u);
  EXPECT_EQ(stats.jobs[0].job, "job");
  EXPECT_EQ(stats.jobs[0].rows_total, 4 * kRows);
  EXPECT_EQ(stats.jobs[0].rows_shared_total, stats.rows_shared_total);
}

TEST_F(SharedStreamsTest, SoDoJobsThatCutTheSameRowsIntoOtherBatches) {
  Start(0);
  const auto a = Open(Job("a"), sinks_[0]), b = Open(Job("b"), sinks_[1]);
  Ask(a);
  EXPECT_TRUE(scheduler_->Ask(b, MakeRequest(1, 0, 0, 0, kRows / 2)).ok());
  RowRequest rest = MakeRequest(2, 0, 1, kRows / 2, kRows / 2);
  for (uint32_t& row : rest.rows) row += kRows / 2;
  EXPECT_TRUE(scheduler_->Ask(b, std::move(rest)).ok());
  RunAll();
  ExpectRows(*sinks_[0]);
  ExpectRows(*sinks_[1]);
  EXPECT_LE(computed_, kRows + 1);  // the first one showed that it is of use
}

TEST_F(SharedStreamsTest, ALateTrainersRowsAreComputedAgain) {
  options_.shared_rows_bytes = 0;
  Start(0);
  const auto work = Job("job");
  const auto a = Open(work, sinks_[0]), b = Open(work, sinks_[1]);
  Ask(a);
  RunAll();
  Ask(b);
  RunAll();
  ExpectRows(*sinks_[0]);
  ExpectRows(*sinks_[1]);
  EXPECT_EQ(computed_, 2 * kRows);
  EXPECT_EQ(scheduler_->stats().shared_bytes, 0u);
}

// Calls `while_computed` while one row is computed for the first stream.
class WaitingTest : public SharedStreamsTest {
 protected:
  WaitingTest() {
    on_row = [this](uint64_t) { std::exchange(while_computed, [] {})(); };
  }
  // Takes the second stream's first row, like another thread.
  void AskAndRun(Scheduler::StreamId id, uint32_t rows = 1) {
    Ask(id, rows);
    EXPECT_TRUE(scheduler_->RunOne(nullptr));
  }
  std::function<void()> while_computed = [] {};
};

TEST_F(WaitingTest, TheThreadThatComputesTheRowHandsItOver) {
  Start(0);
  const auto work = Job("job");
  const auto a = Open(work, sinks_[0]), b = Open(work, sinks_[1]);
  while_computed = [&] {
    AskAndRun(b);
    EXPECT_EQ(sinks_[1]->size(), 0u);
  };
  Ask(a, 1);
  RunAll();
  ExpectRows(*sinks_[0], 1);
  ExpectRows(*sinks_[1], 1);
  EXPECT_EQ(computed_, 1);
  EXPECT_TRUE(scheduler_->WaitIdle(MonotonicTime()));
}

TEST_F(WaitingTest, AStreamThatIsClosedGetsNothing) {
  Start(0);
  const auto work = Job("job");
  const auto a = Open(work, sinks_[0]), b = Open(work, sinks_[1]);
  while_computed = [&] {
    AskAndRun(b, 2);
    scheduler_->CloseStream(b);
  };
  Ask(a, 1);
  RunAll();
  ExpectRows(*sinks_[0], 1);
  EXPECT_EQ(sinks_[1]->size(), 0u);
  EXPECT_TRUE(scheduler_->WaitIdle(MonotonicTime()));
}

TEST_F(WaitingTest, TheStreamThatItIsComputedForMayBeClosed) {
  Start(0);
  const auto work = Job("job");
  const auto a = Open(work, sinks_[0]), b = Open(work, sinks_[1]);
  while_computed = [&] {
    AskAndRun(b);
    scheduler_->CloseStream(a);
  };
  Ask(a, 2);
  RunAll();
  EXPECT_EQ(sinks_[0]->size(), 0u);
  ExpectRows(*sinks_[1], 1);
}

TEST_F(WaitingTest, AnErrorIsSharedByStreamsOfOneJob) {
  Start(0);
  const auto work = Job("job");
  work->bad_sample = 0;
  const auto a = Open(work, sinks_[0]), b = Open(work, sinks_[1]);
  while_computed = [&] { AskAndRun(b); };
  Ask(a, 1);
  RunAll();
  for (int i : {0, 1}) {
    const std::vector<FinishedGroup> groups = sinks_[i]->Take();
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_TRUE(absl::IsDataLoss(groups[0].status)) << groups[0].status;
  }
  EXPECT_EQ(computed_, 1);
}

TEST_F(WaitingTest, AnotherJobMeetsABadSampleItself) {
  Start(0);
  const auto first = Job("first"), second = Job("second");
  first->bad_sample = 0;
  const auto a = Open(first, sinks_[0]), b = Open(second, sinks_[1]);
  while_computed = [&] { AskAndRun(b); };
  Ask(a, 1);
  RunAll();
  EXPECT_FALSE(sinks_[0]->Take().at(0).status.ok());
  ExpectRows(*sinks_[1], 1);
  EXPECT_EQ(computed_, 2);
  EXPECT_EQ(scheduler_->stats().rows_shared_total, 0u);
}

TEST_F(WaitingTest, WhatOthersFindAbsentIsAskedOfTheJobItself) {
  Start(0);
  const auto work = Job("job");
  const auto a = Open(work, sinks_[0]), b = Open(work, sinks_[1]);
  while_computed = [&] {
    RowRequest request = MakeRequest(1, 0, 0, 0, 1);
    request.absent = {0};
    EXPECT_TRUE(scheduler_->Ask(b, std::move(request)).ok());
    EXPECT_TRUE(scheduler_->RunOne(nullptr));
    EXPECT_EQ(sinks_[1]->size(), 1u);
  };
  Ask(a, 1);
  RunAll();
  EXPECT_EQ(computed_, 2);
}

}  // namespace
}  // namespace leat::worker
