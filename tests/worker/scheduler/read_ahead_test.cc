// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/read_ahead.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/scheduler/read_ahead_fixture.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

TEST_F(ReadAheadRulesTest, NobodyIsChosenOfNone) {
  EXPECT_EQ(Choose(), nullptr);
  Reader a;
  ahead_->Open(&a, "a");
  EXPECT_EQ(Choose(), nullptr) << "it has no rows";
  ahead_->Put(&a, {0, 0});
  EXPECT_EQ(Choose(), &a);
  a.may = false;
  EXPECT_EQ(Choose(), nullptr);
  a.may = true;
  ahead_->Remove(&a);
  ahead_->Remove(&a);
  EXPECT_EQ(Choose(), nullptr);
  ahead_->Put(&a, {0, 0});
  EXPECT_EQ(ahead_->streams(), 1u);
  ahead_->Close(&a);
  EXPECT_EQ(Choose(), nullptr) << "it is closed";
  EXPECT_EQ(ahead_->streams(), 0u);
}

TEST_F(ReadAheadRulesTest, AJobTakesNoMoreThreadsThanItLeaves) {
  std::array<Reader, 5> jobs;
  std::vector<ReadAhead::Read> reads;
  std::vector<int> threads;
  for (int job = 0; job < 4; ++job) {
    Open(&jobs[job], std::string(1, static_cast<char>('a' + job)));
    int taken = 0;
    for (; Choose() == &jobs[job]; ++taken) reads.push_back(Begin(&jobs[job]));
    EXPECT_EQ(Choose(), nullptr);
    threads.push_back(taken);
  }
  EXPECT_THAT(threads, ElementsAre(4, 2, 1, 1));
  EXPECT_EQ(ahead_->threads_reading(), 8);
  // One comes back, but goes to no job that has as many as are left.
  End(reads.front());
  EXPECT_EQ(Choose(), nullptr);
  Open(&jobs[4], "e");
  EXPECT_EQ(Choose(), &jobs[4]);
}

TEST_F(ReadAheadRulesTest, TheOnlyThreadReads) {
  Limit(1, 1000);
  Reader a;
  Open(&a, "a");
  EXPECT_EQ(Choose(), &a);
  const ReadAhead::Read read = Begin(&a);
  EXPECT_EQ(Choose(), nullptr);
  End(read);
  EXPECT_EQ(Choose(), &a);
}

TEST_F(ReadAheadRulesTest, AJobTakesNoMoreBytesThanItLeaves) {
  Limit(100, 8);
  Reader a, b;
  std::vector<ReadAhead::Read> reads;
  Open(&a, "a");
  while (Choose() == &a) reads.push_back(Begin(&a));
  EXPECT_THAT(reads, SizeIs(4));
  EXPECT_FALSE(ahead_->HasBytesLeft(a));
  EXPECT_TRUE(ahead_->IsShortOfBytes());
  Open(&b, "b");
  EXPECT_TRUE(ahead_->HasBytesLeft(b));
  while (Choose() == &b) Begin(&b);
  EXPECT_EQ(RecordsAhead(), 6u);
  // Records that were read count until they are taken.
  for (const ReadAhead::Read& read : reads) End(read);
  EXPECT_EQ(RecordsAhead(), 6u);
  EXPECT_EQ(Choose(), nullptr);
  ahead_->Take(*reads[0].group);
  EXPECT_EQ(Choose(), &b);
  EXPECT_FALSE(ahead_->HasBytesLeft(a)) << "3 and one more, of 3 that are left";
  b.may = false;
  ahead_->Take(*reads[1].group);
  EXPECT_EQ(Choose(), &a);
  EXPECT_TRUE(ahead_->HasBytesLeft(a));
}

TEST_F(ReadAheadRulesTest, ARecordThatIsLargerThanTheBytesIsReadAlone) {
  ahead_.emplace(8, 1);
  Reader a, b;
  Open(&a, "a");
  EXPECT_EQ(Choose(), &a);
  const ReadAhead::Read read = ahead_->Begin(GroupOf(&a, 10), 10);
  EXPECT_EQ(read.rows, 1u) << "there is no room for more";
  EXPECT_EQ(Choose(), nullptr);
  End(read, uint64_t{1} << 30);
  EXPECT_EQ(ahead_->bytes_ahead(), uint64_t{1} << 30);
  EXPECT_EQ(Choose(), nullptr);
  Open(&b, "b");
  EXPECT_EQ(Choose(), &b) << "it has none";
  ahead_->Take(*read.group);
  EXPECT_EQ(ahead_->bytes_ahead(), 0u);
  EXPECT_FALSE(ahead_->IsShortOfBytes());
  ahead_->Remove(&b);
  EXPECT_EQ(Choose(), &a);
}

TEST_F(ReadAheadRulesTest, TheMeanOfAJobsRecordsIsReserved) {
  Limit(8, 5);
  Reader a, b;
  Open(&a, "a");
  Open(&b, "b");
  const ReadAhead::Read read = Begin(&a);
  EXPECT_EQ(read.reserved, kMeanRecord);
  End(read, 33 * kMeanRecord);
  ahead_->Take(*read.group);
  EXPECT_EQ(Begin(&a).reserved, 2 * kMeanRecord);
  EXPECT_FALSE(ahead_->HasBytesLeft(a)) << "2 and 2 more, of 3 that are left";
  EXPECT_EQ(Begin(&b).reserved, kMeanRecord) << "another job";
}

TEST_F(ReadAheadRulesTest, AThreadTakesAsManyRowsAsItReadsAtOnce) {
  Reader a;
  Open(&a, "a");
  const Reads group = GroupOf(&a, 1000);
  const auto rows = [&](size_t together, Duration each) {
    const ReadAhead::Read read = ahead_->Begin(group, together);
    EXPECT_EQ(read.first + read.rows, group->begun());
    End(read, kMeanRecord, each);
    return read.rows;
  };
  EXPECT_EQ(rows(1, kMeanRead), 1u);
  EXPECT_EQ(rows(5, kMeanRead), 5u) << "one request brings them";
  EXPECT_EQ(rows(500, kMeanRead), ReadAhead::kMaxRowsAtOnce);
  // A thread reads four rows at once if each takes 45 µs.
  for (int i = 0; i < 400; ++i)
    End(Begin(&a), 0, std::chrono::microseconds(45));
  EXPECT_EQ(rows(1, kMeanRead), 4u);
  EXPECT_EQ(rows(5, kMeanRead), 5u);
  EXPECT_TRUE(group->unread());
  const Reads last = GroupOf(&a, 2);
  EXPECT_EQ(ahead_->Begin(last, 5).rows, 2u) << "the group has no more";
  EXPECT_FALSE(last->unread());
}

TEST_F(ReadAheadRulesTest, TheBytesBoundTheRowsOfAThread) {
  Limit(8, 10);
  Reader a;
  Open(&a, "a");
  const Reads group = GroupOf(&a, 100);
  EXPECT_EQ(ahead_->Begin(group, 3).rows, 3u);
  EXPECT_EQ(ahead_->Begin(group, 64).rows, 4u) << "7 are left, beyond its 3";
  EXPECT_EQ(ahead_->Begin(group, 64).rows, 1u);
}

TEST_F(ReadAheadRulesTest, TheFewestThreadsThenTheFewestRowsThenTheStep) {
  Reader first, late, early, other;
  Open(&first, "m", {0, 5});
  Open(&late, "m", {1, 0});
  Open(&early, "m", {0, 4});
  EXPECT_EQ(Choose(), &early);
  ahead_->Put(&early, {0, 5});
  EXPECT_EQ(Choose(), &first) << "it was opened first";
  const ReadAhead::Read of_first = Begin(&first, 2);
  ahead_->Put(&first, {0, 0});
  EXPECT_EQ(Choose(), &early) << "it has no rows ahead";
  Begin(&early);
  ahead_->Put(&early, {0, 5});
  EXPECT_EQ(Choose(), &late);
  Begin(&late);
  ahead_->Put(&late, {1, 0});
  EXPECT_EQ(Choose(), &early) << "two have one row ahead";
  for (const std::string job : {"a", "z"}) {
    Open(&other, job, {9, 9});
    EXPECT_EQ(Choose(), &other) << "its job has no threads";
    const ReadAhead::Read read = Begin(&other);
    ahead_->Put(&other, {9, 9});
    EXPECT_EQ(Choose(), &other) << "one thread, and the others have three";
    ahead_->Drop(*read.group);
    End(read);
    ahead_->Close(&other);
  }
  End(of_first);
  ahead_->Take(*of_first.group);
  ahead_->Take(*of_first.group);
  ahead_->Put(&first, {3, 3});
  EXPECT_EQ(Choose(), &first) << "its rows were taken";
}

TEST_F(ReadAheadRulesTest, OnesThatMayNotHoldUpNobody) {
  std::vector<std::unique_ptr<Reader>> waiting;
  for (int i = 0; i < 20; ++i) {
    waiting.push_back(std::make_unique<Reader>());
    waiting.back()->may = false;
    Open(waiting.back().get(), i % 2 == 0 ? "a" : "b");
  }
  Reader ready;
  Open(&ready, "a", {7, 7});
  EXPECT_EQ(Choose(), &ready);
  waiting[4]->may = waiting[5]->may = true;
  EXPECT_EQ(Choose(), waiting[4].get()) << "of those, it was opened first";
  EXPECT_LE(looks_, 6);
}

TEST_F(ReadAheadRulesTest, RowsAreReadyInTheOrderOfTheirReads) {
  Reader a;
  Open(&a, "a");
  const Reads group = GroupOf(&a, 4);
  const ReadAhead::Read early = ahead_->Begin(group, 2);
  const ReadAhead::Read late = ahead_->Begin(group, 2);
  EXPECT_EQ(a.rows_ahead(), 4u);
  EXPECT_EQ(a.rows_ready(), 0u);
  End(late);
  EXPECT_EQ(group->ready(), 2u);
  EXPECT_EQ(a.rows_ready(), 2u);
  EXPECT_FALSE(group->all_ready());
  const auto take = [&] {
    const ReadAhead::Taken taken = ahead_->Take(*group);
    EXPECT_THAT(taken.records, SizeIs(1));
    EXPECT_EQ(taken.records.front().sample, taken.index);
    return taken.index;
  };
  EXPECT_EQ(take(), 2u) << "a row that is late holds up none after it";
  End(early);
  EXPECT_EQ(take(), 0u);
  EXPECT_EQ(a.rows_ahead(), 2u);
  EXPECT_EQ(a.rows_ready(), 2u);
  EXPECT_EQ(take(), 1u);
  EXPECT_EQ(take(), 3u);
  EXPECT_EQ(a.rows_ahead(), 0u);
  EXPECT_EQ(ahead_->bytes_ahead(), 0u);
  const Reads other = GroupOf(&a, 2);
  End(ahead_->Begin(other, 2));
  EXPECT_TRUE(other->all_ready());
}

TEST_F(ReadAheadRulesTest, AnErrorIsARecordOfNoBytes) {
  Reader a;
  Open(&a, "a");
  const ReadAhead::Read read = Begin(&a);
  std::vector<RowRecords> records{
      {{.sample = 1, .stored = NotFound("record 1: gone")}}};
  ahead_->End(read, records, kMeanRead);
  EXPECT_EQ(ahead_->bytes_ahead(), 0u);
  EXPECT_TRUE(read.group->all_ready());
  EXPECT_FALSE(ahead_->Take(*read.group).records.front().stored.ok());
}

TEST_F(ReadAheadRulesTest, ADroppedGroupGivesItsBytesBackOnce) {
  Reader a;
  Open(&a, "a");
  const Reads group = GroupOf(&a, 4);
  const ReadAhead::Read kept = Begin(&a);
  End(kept);
  End(ahead_->Begin(group, 2));
  ahead_->Take(*group);
  const ReadAhead::Read hanging = ahead_->Begin(group, 1);
  EXPECT_EQ(RecordsAhead(), 3u);
  EXPECT_FALSE(group->dropped());
  const std::vector<RowRecords> unwanted = ahead_->Drop(*group);
  EXPECT_TRUE(group->dropped());
  EXPECT_THAT(unwanted[1], SizeIs(1)) << "for its owner to free";
  EXPECT_EQ(a.rows_ahead(), 1u);
  EXPECT_EQ(a.rows_ready(), 1u);
  EXPECT_EQ(RecordsAhead(), 2u) << "one is kept, and one is being read";
  EXPECT_EQ(ahead_->threads_reading(), 1);
  End(hanging, 100 * kMeanRecord);
  EXPECT_EQ(RecordsAhead(), 1u);
  EXPECT_EQ(ahead_->threads_reading(), 0);
  EXPECT_EQ(a.rows_ready(), 1u);
  EXPECT_EQ(group->ready(), 0u);
  ahead_->Take(*kept.group);
  EXPECT_EQ(ahead_->bytes_ahead(), 0u);
}

// A thread that finds its group dropped stops reading it.
TEST_F(ReadAheadRulesTest, FewerRecordsThanRowsComeOfADroppedGroup) {
  Reader a;
  Open(&a, "a");
  const ReadAhead::Read read = Begin(&a, 5);
  ahead_->Drop(*read.group);
  std::vector<RowRecords> none;
  ahead_->End(read, none, kMeanRead);
  EXPECT_EQ(ahead_->bytes_ahead(), 0u);
  EXPECT_EQ(ahead_->threads_reading(), 0);
  EXPECT_EQ(Begin(&a).reserved, kMeanRecord) << "nothing was learnt";
}

TEST_F(ReadAheadRulesTest, AJobEndsWhileItsRecordsAreRead) {
  Limit(2, 2);
  auto closed = std::make_unique<Reader>();
  Open(closed.get(), "a");
  const ReadAhead::Read read = Begin(closed.get(), 2);
  EXPECT_TRUE(ahead_->IsShortOfBytes());
  ahead_->Drop(*read.group);
  ahead_->Close(closed.get());
  closed.reset();
  EXPECT_EQ(RecordsAhead(), 2u) << "they are lacking";
  EXPECT_EQ(ahead_->threads_reading(), 1);
  EXPECT_FALSE(ahead_->IsShortOfBytes()) << "no job lacks them";
  Reader again;
  Open(&again, "a");
  EXPECT_EQ(Choose(), &again) << "it does not owe them";
  End(Begin(&again));
  EXPECT_FALSE(ahead_->HasBytesLeft(again)) << "1 and one more, of none";
  End(read);
  EXPECT_EQ(RecordsAhead(), 1u);
  EXPECT_EQ(ahead_->threads_reading(), 0);
}

TEST_F(ReadAheadRulesTest, StreamsOfAJobShareItsPart) {
  Limit(4, 1000);
  Reader a1, a2, b;
  Open(&a1, "a");
  Open(&a2, "a");
  Begin(&a1);
  Begin(&a2);
  EXPECT_EQ(Choose(), nullptr);
  ahead_->Close(&a2);
  EXPECT_EQ(Choose(), nullptr) << "the job goes on with its other stream";
  Open(&b, "b");
  EXPECT_EQ(Choose(), &b);
}

}  // namespace
}  // namespace leat::worker
