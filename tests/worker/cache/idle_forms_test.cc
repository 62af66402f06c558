// SPDX-License-Identifier: Apache-2.0
#include "worker/cache/idle_forms.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/cache/idle_forms_fixture.h"
#include "tests/worker/scheduler/fixture.h"
#include "worker/cache/crowd.h"

namespace leat::worker {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

class IdleFormsTest : public IdleFormsFixture {
 protected:
  IdleFormsTest() : IdleFormsFixture(kPlenty) {}

  bool crowded_ = false;
  uint64_t throttled_ = 7;
  IdleForms idle_{{.makers = 0,
                   .crowded = [this](size_t) { return crowded_; },
                   .times_throttled = [this] { return throttled_; }},
                  &cache_,
                  &work_,
                  clock_,
                  clock_};
};

TEST_F(IdleFormsTest, WhatTheAccountCannotPayForIsMadeInIdleTime) {
  ReadEpochs(1);
  EXPECT_LT(CountForms(), kRecords);
  EXPECT_GT(work_.size(), kRecords / 2);
  const FormAccount::Totals before = cache_.forms().account().totals();
  while (idle_.MakeOne(&maker_)) {
  }
  // The first decodes were before a plan, and in the second epoch they lack
  // forms as well.
  ReadEpochs(1);
  while (idle_.MakeOne(&maker_)) {
  }
  EXPECT_EQ(CountForms(), kRecords);
  EXPECT_EQ(work_.size(), 0u);
  EXPECT_LE(cache_.forms().account().totals().spent, before.spent + seconds(1))
      << "idle time is not spent";
  const IdleForms::Stats stats = idle_.stats();
  EXPECT_EQ(stats.made, maker_.made.size());
  EXPECT_EQ(stats.given_up + stats.failed, 0u);
  EXPECT_GT(stats.took, Duration(0));
}

TEST_F(IdleFormsTest, NothingIsMadeWhileARowIsOwedOrOnceItIsShut) {
  ReadEpochs(1);
  work_.SetOwing(true);
  EXPECT_FALSE(idle_.MakeOne(&maker_));
  work_.SetOwing(false);
  EXPECT_TRUE(idle_.MakeOne(&maker_));
  work_.Shut();
  EXPECT_FALSE(idle_.MakeOne(&maker_));
  work_.SetOwing(true);
  work_.SetOwing(false);
  EXPECT_FALSE(idle_.MakeOne(&maker_));
  EXPECT_GT(work_.size(), 0u);
}

TEST_F(IdleFormsTest, AFormThatIsGivenUpIsTheNextOne) {
  ReadEpochs(1);
  maker_.on_make = [&](const FormOrder&) { work_.SetOwing(true); };
  EXPECT_TRUE(idle_.MakeOne(&maker_));
  EXPECT_EQ(idle_.stats().given_up, 1u);
  EXPECT_TRUE(maker_.made.empty());
  const std::byte* const given_up = maker_.begun.back();
  maker_.on_make = nullptr;
  work_.SetOwing(false);
  EXPECT_TRUE(idle_.MakeOne(&maker_));
  EXPECT_EQ(maker_.begun.back(), given_up);
  EXPECT_EQ(idle_.stats().made, 1u);
}

TEST_F(IdleFormsTest, PixelsAreMadeAtTheScaleOfTheDecode) {
  pixel_halvings_ = 2;
  ReadEpochs(1);
  int halvings = -1;
  maker_.on_make = [&](const FormOrder& order) {
    halvings = order.pixel_halvings;
  };
  EXPECT_TRUE(idle_.MakeOne(&maker_));
  EXPECT_EQ(halvings, 2);
}

TEST_F(IdleFormsTest, RecordsComeInTheOrderOfTheirLastDecodes) {
  ReadEpochs(1);
  while (idle_.MakeOne(&maker_)) {
  }
  std::vector<const std::byte*> order;
  for (const auto& file : files_)
    if (std::ranges::find(maker_.begun, file.data()) != maker_.begun.end())
      order.push_back(file.data());
  EXPECT_EQ(maker_.begun, order);
}

TEST_F(IdleFormsTest, AFileThatWasDecodedAgainComesBehindTheOthers) {
  IdleWork work;
  for (const uint64_t record : {1, 2, 3, 1})
    work.Offer({.dataset = kept_, .record = record});
  EXPECT_EQ(work.size(), 3u);
  auto taken = work.Take();
  EXPECT_EQ(taken->record, 2u);
  work.GiveBack(*std::move(taken));
  work.Forget(kept_, 3, 1);
  EXPECT_EQ(work.size(), 3u) << "another file of the record";
  work.Forget(kept_, 3, 0);
  EXPECT_EQ(work.Take()->record, 2u);
  EXPECT_EQ(work.Take()->record, 1u);
  EXPECT_FALSE(work.Take().has_value());
  for (uint64_t record = 0; record < IdleWork::kMost + 10; ++record)
    work.Offer({.dataset = kept_, .record = record});
  EXPECT_EQ(work.size(), IdleWork::kMost);
}

TEST_F(IdleFormsTest, MakersRestWhileTheyAreInOthersWay) {
  ReadEpochs(1);
  throttled_ = 8;
  EXPECT_TRUE(idle_.MakeOne(&maker_));
  maker_.on_make = [&](const FormOrder&) { throttled_ = 9; };
  EXPECT_TRUE(idle_.MakeOne(&maker_)) << "it was rows that used the quota up";
  EXPECT_FALSE(idle_.MakeOne(&maker_));
  clock_.Advance(IdlePace::kThrottledRest);
  maker_.on_make = nullptr;
  crowded_ = true;
  for (int i = 2; i < IdlePace::kForms; ++i)
    EXPECT_TRUE(idle_.MakeOne(&maker_));
  EXPECT_FALSE(idle_.MakeOne(&maker_));
  clock_.Advance(100 * (IdlePace::kForms - 2) * milliseconds(20));
  EXPECT_TRUE(idle_.MakeOne(&maker_));
}

TEST_F(IdleFormsTest, WhatARowMadeDoesNotWait) {
  ReadEpochs(1);
  EXPECT_GT(work_.size(), kRecords / 2);
  cache_.forms().account().Save(std::chrono::hours(1));
  ReadEpochs(1);
  EXPECT_LT(work_.size(), 10u) << "but for plain decodes";
  ReadEpochs(1);
  EXPECT_EQ(work_.size(), 0u);
  EXPECT_EQ(CountForms(), kRecords);
}

TEST_F(IdleFormsTest, WhatNoDecodeWillUseIsNotMade) {
  EndReading();
  BeginReading(2);
  ReadEpochs(1);
  EXPECT_GT(work_.size(), kRecords / 2) << "epoch 1 will use them";
  ReadEpochs(1);
  EXPECT_EQ(work_.size(), 0u);
  EXPECT_FALSE(idle_.MakeOne(&maker_));
  // Nor for what an iterator that is gone has left.
  EndReading();
  BeginReading(0);
  ReadEpochs(1);
  EXPECT_GT(work_.size(), 0u);
  EndReading();
  EXPECT_FALSE(idle_.MakeOne(&maker_));
  EXPECT_TRUE(maker_.begun.empty());
}

TEST_F(IdleFormsTest, AWorkerThatOwnsNoShardMakesNone) {
  ReadEpochs(1);
  cache_.SetOwned("photos", {false});
  EXPECT_FALSE(idle_.MakeOne(&maker_));
  EXPECT_TRUE(maker_.begun.empty());
}

// Its bytes stay until the maker has finished.
TEST_F(IdleFormsTest, ARecordThatGoesWhileItsFormIsMadeGetsNone) {
  ReadEpochs(1);
  maker_.on_make = [&](const FormOrder&) { PushOut(); };
  EXPECT_TRUE(idle_.MakeOne(&maker_));
  EXPECT_EQ(idle_.stats().failed, 1u);
  // The others are gone as well, and their bytes are not read.
  maker_.on_make = [&](const FormOrder&) { ADD_FAILURE(); };
  EXPECT_FALSE(idle_.MakeOne(&maker_));
  EXPECT_EQ(work_.size(), 0u);
}

TEST_F(IdleFormsTest, AFormForWhichThereIsNoRoomIsNotMadeAgain) {
  ReadEpochs(1);
  maker_.form_bytes = kPlenty;
  EXPECT_TRUE(idle_.MakeOne(&maker_));
  EXPECT_EQ(idle_.stats().failed, 1u);
  EXPECT_LE(cache_.stats().bytes, kPlenty);
  const size_t waiting = work_.size();
  maker_.result = DataLoss("damaged");
  EXPECT_TRUE(idle_.MakeOne(&maker_));
  EXPECT_EQ(idle_.stats().failed, 2u);
  const std::set<const std::byte*> failed(maker_.begun.begin(),
                                          maker_.begun.end());
  maker_.form_bytes = kFormBytes;
  maker_.result = absl::OkStatus();
  ReadEpochs(1);
  while (idle_.MakeOne(&maker_)) {
  }
  EXPECT_GT(idle_.stats().made, waiting - 2);
  for (size_t i = 2; i < maker_.begun.size(); ++i)
    EXPECT_FALSE(failed.contains(maker_.begun[i]));
}

TEST_F(IdleFormsTest, TheSchedulerSaysWhenARowIsOwed) {
  const auto wake = std::make_shared<WakeSignal>();
  BufferPool pool(16 << 20, wake);
  FakeDevice device(wake, 2);
  Scheduler scheduler({.threads = 0, .idle = &work_}, &pool, wake, clock_);
  const auto sink = std::make_shared<FakeSink>();
  const auto open = [&](std::shared_ptr<const RowWork> work) {
    return *scheduler.OpenStream(std::move(work), sink);
  };
  const auto plain = open(std::make_shared<FakeWork>("a"));
  EXPECT_EQ(work_.closed(), 0u);
  ASSERT_TRUE(scheduler.Ask(plain, MakeRequest(1, 0, 0, 0, 3)).ok());
  EXPECT_NE(work_.closed(), 0u);
  while (scheduler.RunOne(nullptr)) {
  }
  EXPECT_EQ(work_.closed(), 0u);
  EXPECT_EQ(work_.closings(), 1u);
  ASSERT_TRUE(scheduler.Ask(plain, MakeRequest(2, 0, 0, 0, 3)).ok());
  scheduler.Cancel(plain, 2);
  EXPECT_EQ(work_.closed(), 0u);
  ASSERT_TRUE(scheduler.Ask(plain, MakeRequest(3, 0, 0, 0, 3)).ok());
  scheduler.CloseStream(plain);
  EXPECT_EQ(work_.closed(), 0u);
  EXPECT_EQ(work_.closings(), 3u);
  // Rows on a device are owed until they come back.
  const auto staged = open(std::make_shared<StagedWork>("b", &device));
  ASSERT_TRUE(scheduler.Ask(staged, MakeRequest(1, 0, 0, 0, 3)).ok());
  while (scheduler.RunOne(nullptr)) {
  }
  EXPECT_NE(work_.closed(), 0u);
  EXPECT_TRUE(device.FinishOne(absl::OkStatus()));
  EXPECT_EQ(work_.closed(), 0u);
  sink->Take();
}

TEST(IdlePace, MakersThatAreInOthersWayRest) {
  IdlePace pace;
  const MonotonicTime now{};
  const auto make = [&](int forms, int crowded) {
    for (int i = 0; i < forms; ++i)
      pace.Made(now, milliseconds(2), i < crowded);
  };
  make(IdlePace::kForms, 0);
  make(IdlePace::kForms, 1);
  EXPECT_LT(pace.rests_until(), now) << "once is chance";
  make(IdlePace::kForms - 1, 3);
  EXPECT_LT(pace.rests_until(), now);
  make(1, 0);
  EXPECT_EQ(pace.rests_until(), now + 100 * milliseconds(6));
  pace.Throttled(now);
  EXPECT_EQ(pace.rests_until(), now + IdlePace::kThrottledRest);
  for (int i = 0; i < IdlePace::kForms; ++i) pace.Made(now, seconds(9), true);
  EXPECT_EQ(pace.rests_until(), now + IdlePace::kLongestRest);
  pace.Throttled(now);
  EXPECT_EQ(pace.rests_until(), now + IdlePace::kLongestRest);
}

TEST(Crowd, IsWhereOthersWantAllProcessors) {
  EXPECT_EQ(Crowd::RunnableOf("0.20 0.18 0.12 3/80 11206\n"), 3u);
  for (const char* const text : {"", "1 2 3", "1 2 3 /4 5", "1 2 3 4", "a"})
    EXPECT_EQ(Crowd::RunnableOf(text), std::nullopt) << text;
  const Crowd crowd;
  EXPECT_FALSE(crowd.IsThere(1'000'000'000));
}

TEST(TimedSignal, WaitsUntilItIsNotifiedOrTheTimeIsOver) {
  TimedSignal signal;
  const uint32_t seen = signal.Prepare();
  const MonotonicTime begin = Clock::Real().Now();
  signal.Wait(seen, begin - seconds(1));
  signal.Wait(seen, begin + milliseconds(2));
  EXPECT_GE(Clock::Real().Now() - begin, microseconds(1900));
  signal.Notify();
  signal.Wait(seen);  // at once
  std::thread other([&] { signal.Notify(); });
  for (uint32_t now = signal.Prepare(); now < seen + 2; now = signal.Prepare())
    signal.Wait(now);
  other.join();
}

}  // namespace
}  // namespace leat::worker
