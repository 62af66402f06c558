// SPDX-License-Identifier: Apache-2.0
//
// Reading ahead: what storage holds up, and what it does not.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/source/fake_storage.h"

namespace leat::worker {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::set<uint32_t> RowsOf(const std::vector<FinishedGroup>& groups) {
  std::set<uint32_t> rows;
  for (const FinishedGroup& group : groups) {
    EXPECT_TRUE(group.status.ok()) << group.status;
    rows.insert(group.rows.begin(), group.rows.end());
  }
  return rows;
}

TEST_F(ReadAheadTest, ARecordThatIsLateHoldsUpItsGroupOnly) {
  storage_.Hold(0);
  Ask(Open(Job("a"), sink_), MakeRequest(1, 0, 0, 0, 20));
  sink_->WaitRows(18);
  EXPECT_FALSE(RowsOf(sink_->Take()).contains(0));
  storage_.Release(0);
  sink_->WaitRows(2);
  EXPECT_EQ(RowsOf(sink_->Take()), (std::set<uint32_t>{0, 1}));
}

TEST_F(ReadAheadTest, MoreRecordsAreOnTheirWayThanThereAreDecodeThreads) {
  options_.threads = 1;
  storage_.Hold(0, 100);
  Ask(Open(Job("a"), sink_), MakeRequest(1, 0, 0, 0, 100));
  storage_.WaitBegun(4);  // a job alone has half of 8 threads
  storage_.ReleaseAll();
  sink_->WaitRows(100);
}

TEST_F(ReadAheadTest, RecordsAreReadInThePlansOrder) {
  options_.read_threads = 1;
  const auto id = Open(Job("a"), sink_);
  storage_.Hold(1000);
  Ask(id, MakeRequest(1, 0, 9, 1000, 1));
  storage_.WaitBegun(1);
  Ask(id, MakeRequest(2, 1, 0, 60, 2));
  Ask(id, MakeRequest(3, 0, 7, 40, 3));
  Ask(id, MakeRequest(4, 0, 3, 20, 2));
  storage_.ReleaseAll();
  sink_->WaitRows(8);
  EXPECT_THAT(storage_.order(), ElementsAre(1000, 20, 21, 40, 41, 42, 60, 61));
}

TEST_F(ReadAheadTest, RowsThatOneRequestBringsGoToOneThread) {
  options_.group_bytes = 10 * (kBig + 8);
  const auto work = Job("a");
  work->together = 5;
  Ask(Open(work, sink_), MakeRequest(1, 0, 0, 0, 40));
  sink_->WaitRows(40);
  EXPECT_EQ(RowsOf(sink_->Take()).size(), 40u);
  EXPECT_THAT(work->requests(), Each(5));
  EXPECT_THAT(work->requests(), SizeIs(8));
}

TEST_F(ReadAheadTest, TheBytesBoundWhatOneRequestBrings) {
  options_.group_bytes = 10 * (kBig + 8);
  options_.read_ahead_bytes = 1;  // one row at a time
  const auto work = Job("a");
  work->together = 5;
  Ask(Open(work, sink_), MakeRequest(1, 0, 0, 0, 20));
  sink_->WaitRows(20);
  EXPECT_EQ(RowsOf(sink_->Take()).size(), 20u);
}

TEST_F(ReadAheadTest, AJobWhoseStorageHangsLeavesTheOthersThreadsAndBytes) {
  options_.threads = 1;
  options_.read_threads = 4;
  options_.read_ahead_bytes = 1;  // one read per job, whatever else
  storage_.Hold(0, 1000);
  const auto hanging = std::make_shared<FakeSink>();
  Ask(Open(Job("a"), hanging), MakeRequest(1, 0, 0, 0, 500));
  storage_.WaitBegun(1);
  Ask(Open(Job("b"), sink_), MakeRequest(1, 0, 0, 5000, 100));
  // Not read ahead at all: the decode threads are free for it.
  const auto local = std::make_shared<FakeSink>();
  local->KeepNothing();
  Ask(Open(std::make_shared<FakeWork>("c"), local),
      MakeRequest(1, 0, 0, 0, 100));
  local->WaitRows(100);
  sink_->WaitRows(100);
  EXPECT_EQ(hanging->size(), 0u);
}

TEST_F(ReadAheadTest, ConsumersThatDoNotReadHoldNothing) {
  options_.read_ahead_bytes = 1;
  const auto stalled = std::make_shared<FakeSink>();  // keeps its groups
  const auto id = Open(Job("a"), stalled);
  Ask(id, MakeRequest(1, 0, 0, 0, 500));
  Ask(Open(Job("a"), sink_), MakeRequest(1, 0, 0, 5000, 100));
  sink_->WaitRows(100);
  // Five groups keep the eight reading threads busy: the stalled consumer has
  // these, and nothing more of its stream was read.
  stalled->WaitRows(10);
  EXPECT_EQ(scheduler().stats().rows_ahead, 0u);
  EXPECT_EQ(scheduler().stats().bytes_ahead, 0u);
  const std::vector<uint64_t> order = storage_.order();
  EXPECT_EQ(std::ranges::count_if(order, [](uint64_t s) { return s < 500; }),
            10);
  scheduler().CloseStream(id);
}

TEST_F(ReadAheadTest, TheBytesAreBounded) {
  options_.read_ahead_bytes = 200 * 1000;
  std::atomic<uint64_t> most{0};
  const auto work = Job("a");
  work->on_read = [&] {
    const uint64_t bytes = scheduler().stats().bytes_ahead;
    for (uint64_t seen = most; bytes > seen;)
      if (most.compare_exchange_weak(seen, bytes)) break;
  };
  Ask(Open(work, sink_), MakeRequest(1, 0, 0, 0, 5000));
  sink_->WaitRows(5000);
  scheduler().Stop();
  EXPECT_GT(most, 0u);
  // By the first guess of a record's size the first read may exceed it.
  EXPECT_LE(most, 200'000u);
  EXPECT_EQ(scheduler().stats().bytes_ahead, 0u);
  EXPECT_EQ(scheduler().stats().rows_ahead, 0u);
}

TEST_F(ReadAheadTest, ACancelledAskReadsNoMore) {
  std::atomic<int> ended{0};
  storage_.Hold(0, 100);
  const auto id = Open(Job("a"), sink_);
  RowRequest request = MakeRequest(1, 0, 0, 0, 100);
  request.lease = MakeLease([&] { ++ended; });
  Ask(id, std::move(request));
  storage_.WaitBegun(4);
  scheduler().Cancel(id, 1);
  // Reads are still under way; nothing of the request waits for them.
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(scheduler().stats().rows_queued, 0u);
  EXPECT_EQ(scheduler().stats().rows_ahead, 0u);
  storage_.ReleaseAll();
  Ask(id, MakeRequest(1, 0, 1, 500, 10));
  sink_->WaitRows(10);
  scheduler().Stop();
  EXPECT_EQ(storage_.order().size(), 14u);
  EXPECT_EQ(scheduler().stats().bytes_ahead, 0u);
}

TEST_F(ReadAheadTest, AStreamClosesWhileItsRecordsAreRead) {
  storage_.Hold(0, 100);
  const auto id = Open(Job("a"), sink_);
  Ask(id, MakeRequest(1, 0, 0, 0, 100));
  storage_.WaitBegun(4);
  scheduler().CloseStream(id);
  EXPECT_EQ(pool_.buffers_in_use(), 0u);
  storage_.ReleaseAll();
  scheduler().Stop();
  EXPECT_EQ(scheduler().stats().bytes_ahead, 0u);
  EXPECT_EQ(sink_->size(), 0u);
}

TEST_F(ReadAheadTest, StopsWhileRecordsAreReadOrSaysThatTheyAreNot) {
  storage_.Hold(0, 100);
  Ask(Open(Job("a"), sink_), MakeRequest(1, 0, 0, 0, 100));
  storage_.WaitBegun(4);
  const Scheduler::Left left = StopButFor(scheduler());
  EXPECT_EQ(left.read_threads, 4);
  EXPECT_EQ(left.decode_threads, 0);
  EXPECT_EQ(left.stages, 0u);
  storage_.ReleaseAll();
  EXPECT_TRUE(scheduler().Stop().none());
  EXPECT_EQ(storage_.order().size(), 4u);
  scheduler_.reset();
  EXPECT_EQ(pool_.buffers_in_use(), 0u);
}

TEST_F(ReadAheadTest, AnErrorReachesItsRow) {
  storage_.missing = 3;
  const auto kept = std::make_shared<FakeSink>();
  Ask(Open(Job("a"), kept), MakeRequest(1, 0, 0, 0, 6));
  kept->WaitRows(6);
  for (const FinishedGroup& group : kept->Take()) {
    if (group.rows.front() != 2) {
      EXPECT_TRUE(group.status.ok()) << group.status;
    } else {
      EXPECT_TRUE(absl::IsNotFound(group.status));
      EXPECT_THAT(Message(group.status), HasSubstr("record 3: gone"));
    }
  }
}

TEST_F(ReadAheadTest, StagedRowsAreReadAheadToo) {
  FakeDevice device(wake_, 2);
  device.inline_done = true;
  storage_.Hold(0);
  const auto work = std::make_shared<StagedReadingWork>(&device, &storage_);
  Ask(Open(work, sink_), MakeRequest(1, 0, 0, 0, 40));
  sink_->WaitRows(38);
  storage_.Release(0);
  sink_->WaitRows(40);
  scheduler_.reset();
}

TEST_F(ReadAheadTest, WithoutThreadsTheDecodeThreadsRead) {
  options_.read_threads = 0;
  const auto kept = std::make_shared<FakeSink>();
  Ask(Open(Job("a"), kept), MakeRequest(1, 0, 0, 0, 1));
  kept->WaitRows(1);
  EXPECT_THAT(Message(kept->Take().front().status),
              HasSubstr("without its record"));
}

// Requests, cancels and closes of several jobs at once; storage holds records
// up and releases them; every row that stays wanted comes once, and nothing is
// left.
TEST_F(ReadAheadTest, NothingIsLostWhateverHappensAtOnce) {
  options_.read_ahead_bytes = 300 * 1000;
  options_.read_threads = 5;
  Scheduler& scheduler = this->scheduler();
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client)
    clients.emplace_back([&, client] {
      std::mt19937 random(client);
      for (int round = 0; round < 20; ++round) {
        const uint64_t base = client * 100'000 + round * 1000;
        const bool cancels = round % 3 == 1;
        const auto sink = std::make_shared<FakeSink>();
        if (round % 2 == 0) sink->KeepNothing();
        const auto id = scheduler.OpenStream(
            Job(std::string(1, static_cast<char>('a' + client % 2))), sink);
        ASSERT_TRUE(id.ok());
        storage_.Hold(base + 3);
        storage_.Hold(base + 305);
        for (uint64_t step = 0; step < 4; ++step)
          ASSERT_TRUE(scheduler
                          .Ask(*id, MakeRequest(step, 0, (step * 3) % 4,
                                                base + step * 100, 5))
                          .ok());
        if (cancels) scheduler.Cancel(*id, random() % 4);
        storage_.Release(base + 3);
        storage_.Release(base + 305);
        if (round % 2 == 0 && !cancels) {
          sink->WaitRows(20);
          std::set<std::pair<uint64_t, uint32_t>> seen;
          for (const FinishedGroup& group : sink->Take())
            for (const uint32_t row : group.rows)
              EXPECT_TRUE(seen.emplace(group.request_id, row).second);
          EXPECT_EQ(seen.size(), 20u);
        }
        scheduler.CloseStream(*id);
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(scheduler.WaitIdle(MonotonicTime::max()));
  scheduler.Stop();
  EXPECT_EQ(scheduler.stats().bytes_ahead, 0u);
  EXPECT_EQ(scheduler.stats().rows_queued, 0u);
  EXPECT_EQ(pool_.buffers_in_use(), 0u);
}

}  // namespace
}  // namespace leat::worker
