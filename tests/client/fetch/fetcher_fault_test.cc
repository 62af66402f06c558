// SPDX-License-Identifier: Apache-2.0
//
// The Fetcher: the fault of an error, and its effect on the row.
#include <map>
#include <set>

#include "tests/client/fetch/fetcher_fixture.h"

namespace leat::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FetcherFaultTest : public FetcherTest {
 protected:
  void Missing(const Action& action, uint64_t sample) {
    EXPECT_TRUE(FailAs(action, v1::FAULT_OBJECT, absl::StatusCode::kNotFound,
                       "no such file", sample)
                    .ok());
  }
  void Faulty(const Action& action, const std::string& text = "not mounted") {
    EXPECT_TRUE(FailAs(action, v1::FAULT_WORKER,
                       absl::StatusCode::kFailedPrecondition, text)
                    .ok());
  }
  // Returns the only request.
  Action One() {
    std::vector<Action> actions = Decide();
    std::erase_if(actions, [](const Action& a) { return a.rows.empty(); });
    EXPECT_EQ(actions.size(), 1u);
    return actions.empty() ? Action() : actions[0];
  }
};

TEST_F(FetcherFaultTest, ABadSampleIsFinalWhateverTheCode) {
  Begin(3);
  AddStep({0, 1});
  EXPECT_TRUE(FailAs(Decide()[0], v1::FAULT_SAMPLE,
                     absl::StatusCode::kUnavailable, "a/b.jpg: truncated")
                  .ok());
  EXPECT_TRUE(absl::IsUnavailable(fetcher_->head().error));
  EXPECT_THAT(std::string(Message(fetcher_->head().error)),
              HasSubstr("a/b.jpg: truncated (worker w0)"));
}

TEST_F(FetcherFaultTest, NotNowCostsTimeAndNoLives) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kCancelled,
        absl::StatusCode::kResourceExhausted, absl::StatusCode::kAborted,
        absl::StatusCode::kDeadlineExceeded}) {
    Begin(2);
    AddStep({0});
    const MonotonicTime begin = clock_.Now();
    uint32_t requests = 0;
    while (fetcher_->head().error.ok()) {
      for (const Action& action : Decide()) {
        ++requests;
        Fail(action, code, "not now");
      }
      if (fetcher_->TakeDirty() || !fetcher_->head().error.ok()) continue;
      ASSERT_GT(due(), clock_.Now());
      clock_.Advance(due() - clock_.Now());
    }
    EXPECT_EQ(clock_.Now() - begin, config_.row_timeout);
    EXPECT_TRUE(absl::IsDeadlineExceeded(fetcher_->head().error));
    EXPECT_GT(requests, 3 * config_.max_row_errors);
    EXPECT_LT(requests, 100u) << "the back-off grows";
  }
}

TEST_F(FetcherFaultTest, WhatTheWorkerCallsTransientIsNotCountedByItsCode) {
  config_.row_timeout = std::chrono::hours(1);
  Begin(1);
  AddStep({0});
  for (uint32_t i = 0; i < 2 * config_.max_row_errors; ++i) {
    EXPECT_TRUE(FailAs(One(), v1::FAULT_TRANSIENT, absl::StatusCode::kInternal,
                       "storage does not answer")
                    .ok());
    clock_.Advance(config_.backoff_max);
  }
  EXPECT_TRUE(Answer(One()).ok());
  ExpectHeadIsRight();
}

// The workers stay in the assignment, and there are more of them than a row
// remembers.
TEST_F(FetcherFaultTest, ManyWorkersThatDrainAtOnceDoNotFailARow) {
  constexpr int kWorkers = 60;
  Begin(kWorkers);
  AddStep({0, 10, 20, 30});
  const MonotonicTime drained = clock_.Now() + seconds(8);
  size_t refused = 0;
  while (!fetcher_->head().complete()) {
    ASSERT_TRUE(fetcher_->head().error.ok()) << fetcher_->head().error;
    for (const Action& action : Decide()) {
      if (action.rows.empty()) continue;
      if (clock_.Now() < drained) {
        ++refused;
        Fail(action, absl::StatusCode::kUnavailable, "draining");
      } else {
        EXPECT_TRUE(Answer(action).ok());
      }
    }
    if (!fetcher_->TakeDirty()) clock_.Advance(due() - clock_.Now());
  }
  EXPECT_GT(refused, 4u * config_.max_row_errors);
  ExpectHeadIsRight();
}

TEST_F(FetcherFaultTest, ErrorsOfOneMomentCountOnceForTheBackoff) {
  config_.max_request_rows = 1;
  Begin(1);
  AddStep({0, 1, 2, 3, 4, 5, 6, 7});
  for (const Action& action : Decide())
    Fail(action, absl::StatusCode::kUnavailable, "draining");
  EXPECT_TRUE(Decide().empty());
  EXPECT_EQ(due(), clock_.Now() + config_.backoff_min);
  clock_.Advance(config_.backoff_min);
  for (const Action& action : Decide())
    Fail(action, absl::StatusCode::kUnavailable, "draining");
  Decide();
  EXPECT_EQ(due(), clock_.Now() + 2 * config_.backoff_min);
}

TEST_F(FetcherFaultTest, BackoffsAreDrawn) {
  double draw = 0.5;
  config_.random = [&] { return draw; };
  Begin(1);
  AddStep({0});
  Close(One(), Unavailable("refused"));
  Decide();
  EXPECT_EQ(due(), clock_.Now() + config_.backoff_min * 3 / 4);
  clock_.Advance(config_.backoff_min);
  draw = 0;
  Close(One(), Unavailable("refused"));
  Decide();
  EXPECT_EQ(due(), clock_.Now() + 2 * config_.backoff_min);
}

TEST_F(FetcherFaultTest, WhatTwoWorkersDoNotFindIsAbsent) {
  Begin(3);
  AddStep({0, 1});
  const Action first = One();
  Missing(first, 5);  // a partner of both
  EXPECT_TRUE(fetcher_->head().error.ok());
  const Action second = One();
  EXPECT_NE(WorkerOf(second), WorkerOf(first));
  EXPECT_THAT(second.absent, IsEmpty());
  Missing(second, 5);
  std::set<uint32_t> rows;
  for (const Action& third : Decide()) {
    EXPECT_THAT(third.absent, ElementsAre(5));
    EXPECT_EQ(third.rows.size(), 1u) << "what is absent is so for one row";
    EXPECT_EQ(WorkerOf(third), "w0") << "its owner again";
    rows.insert(third.rows[0]);
    EXPECT_TRUE(Answer(third).ok());
  }
  EXPECT_EQ(rows.size(), 2u);
  ExpectHeadIsRight();
  // The next row does not name the samples that were absent for this one.
  AddStep({0, 1});
  EXPECT_THAT(One().absent, IsEmpty());
}

TEST_F(FetcherFaultTest, WhatOneWorkerFindsIsNotAbsent) {
  Begin(2);
  AddStep({0});
  Missing(One(), 0);
  const Action other = One();
  EXPECT_EQ(WorkerOf(other), "w1");
  EXPECT_TRUE(Answer(other).ok());
  ExpectHeadIsRight();
  EXPECT_EQ(EndpointOf("w0").failures_in_row, 0u) << "it is not avoided";
}

TEST_F(FetcherFaultTest, TheOnlyWorkersWordCountsTwiceWithTimeBetween) {
  Begin(1);
  AddStep({0});
  Missing(One(), 0);
  EXPECT_TRUE(Decide().empty());
  EXPECT_EQ(due(), clock_.Now() + config_.object_again_alone);
  clock_.Advance(config_.object_again_alone);
  const Action again = One();
  EXPECT_THAT(again.absent, IsEmpty());
  Missing(again, 0);
  const Action agreed = One();
  EXPECT_THAT(agreed.absent, ElementsAre(0));
  EXPECT_TRUE(Answer(agreed).ok());
  ExpectHeadIsRight();
}

TEST_F(FetcherFaultTest, OneWorkersWordDoesNotCountWhileOthersExist) {
  Begin(2);
  AddStep({0});
  Missing(One(), 0);
  // The other one is away: the first is asked again, but not at once.
  uint32_t asked = 0;
  for (int i = 0; i < 40; ++i) {
    for (const Action& action : Decide()) {
      EXPECT_THAT(action.absent, IsEmpty());
      if (WorkerOf(action) == "w1") {
        Close(action, Unavailable("refused"));
      } else {
        ++asked;
        Missing(action, 0);
      }
    }
    clock_.Advance(seconds(1));
  }
  EXPECT_TRUE(fetcher_->head().error.ok());
  EXPECT_GE(asked, 5u);
  EXPECT_LE(asked, 10u);
}

TEST_F(FetcherFaultTest, AWorkerThatComesBackElsewhereIsNotASecondOne) {
  Begin(2);
  AddStep({0});
  const Action first = One();
  Missing(first, 0);
  Close(first, Unavailable("restarted"));
  v1::Assignment moved = MakeAssignment(2, 9);
  moved.mutable_workers(0)->set_address("elsewhere");
  fetcher_->SetTable(
      *AssignmentTable::FromProto(moved, "d", shards_.num_shards()));
  Close(One(), Unavailable("w1 is away"));
  clock_.Advance(config_.object_again);
  for (int i = 0; i < 2; ++i)
    for (const Action& action : Decide()) {
      EXPECT_THAT(action.absent, IsEmpty());
      if (fetcher_->table().endpoints()[action.stream->worker].ref.name == "w0")
        Missing(action, 0);
      else
        Close(action, Unavailable("w1 is away"));
    }
}

TEST_F(FetcherFaultTest, ARowMayHaveSeveralAbsentSamplesUpToABound) {
  config_.max_absent = 3;
  Begin(2);
  AddStep({0});
  const std::vector<uint64_t> lost = {9, 0, 4};
  std::vector<uint64_t> agreed;
  for (const uint64_t sample : lost) {
    for (int i = 0; i < 2; ++i) {
      const Action action = One();
      EXPECT_EQ(action.absent, agreed);
      Missing(action, sample);
    }
    agreed.push_back(sample);
    std::sort(agreed.begin(), agreed.end());
  }
  EXPECT_EQ(One().absent, agreed);
  EXPECT_TRUE(fetcher_->head().error.ok());
}

TEST_F(FetcherFaultTest, MoreAbsentSamplesThanTheBoundAreFinal) {
  config_.max_absent = 1;
  Begin(2);
  AddStep({0});
  for (const uint64_t sample : {4, 4, 5, 5}) Missing(One(), sample);
  EXPECT_TRUE(absl::IsNotFound(fetcher_->head().error));
  EXPECT_THAT(std::string(Message(fetcher_->head().error)),
              HasSubstr("row 0 has more than 1 absent samples; no such file"));
}

TEST_F(FetcherFaultTest, AWorkerThatDoesNotHeedWhatIsAbsentIsLeftAlone) {
  Begin(2);
  AddStep({0});
  for (int i = 0; i < 2; ++i) Missing(One(), 0);
  const Action deaf = One();
  EXPECT_THAT(deaf.absent, ElementsAre(0));
  Missing(deaf, 0);
  EXPECT_GT(EndpointOf(WorkerOf(deaf)).until, clock_.Now());
  const Action other = One();
  EXPECT_NE(WorkerOf(other), WorkerOf(deaf));
  EXPECT_THAT(other.absent, ElementsAre(0));
  EXPECT_TRUE(Answer(other).ok());
  ExpectHeadIsRight();
}

TEST_F(FetcherFaultTest, ASampleBeyondTheDatasetBreaksTheProtocol) {
  Begin(2);
  AddStep({0});
  EXPECT_TRUE(absl::IsInvalidArgument(FailAs(
      One(), v1::FAULT_OBJECT, absl::StatusCode::kNotFound, "x", kSamples)));
}

TEST_F(FetcherFaultTest, AFailingWorkerIsLeftAloneForTheJob) {
  Begin(2);
  AddStep({0});
  AddStep({1});
  const auto actions = Decide();
  ASSERT_EQ(actions.size(), 2u);
  Faulty(actions[0]);
  Faulty(actions[1]);
  const auto again = Decide();
  ASSERT_EQ(again.size(), 2u);
  for (const Action& action : again) {
    EXPECT_EQ(WorkerOf(action), "w1");
    EXPECT_TRUE(Answer(action).ok());
  }
  ExpectHeadIsRight();
  ExpectHeadIsRight();
  EXPECT_EQ(EndpointOf("w0").until, clock_.Now() + config_.fault_backoff_min);
  // It grows with each failed attempt.
  for (int i = 1; i < 8; ++i) {
    clock_.Advance(EndpointOf("w0").until - clock_.Now());
    AddStep({0});
    Faulty(One());
    EXPECT_EQ(EndpointOf("w0").until - clock_.Now(),
              std::min(config_.fault_backoff_min * (1 << i),
                       config_.fault_backoff_max));
    EXPECT_TRUE(Answer(One()).ok());
    ExpectHeadIsRight();
  }
  // After working for as long, a new fault starts from the minimum.
  clock_.Advance(config_.fault_backoff_max * 3);
  AddStep({0});
  Faulty(One());
  EXPECT_EQ(EndpointOf("w0").until, clock_.Now() + config_.fault_backoff_min);
}

TEST_F(FetcherFaultTest, WhenAllAreFailingRowsWaitWithOneWarning) {
  Begin(2);
  AddStep({0});
  int warnings = 0;
  const MonotonicTime begin = clock_.Now();
  while (fetcher_->head().error.ok()) {
    for (const Action& action : Decide())
      Faulty(action, "/data of " + WorkerOf(action) + " is not mounted");
    const std::string warning = std::exchange(decided_.warning, {});
    if (!warning.empty()) {
      ++warnings;
      EXPECT_THAT(warning, HasSubstr("/data of w0 is not mounted"));
      EXPECT_THAT(warning, HasSubstr("/data of w1 is not mounted"));
    }
    if (!fetcher_->TakeDirty() && fetcher_->head().error.ok())
      clock_.Advance(due() - clock_.Now());
  }
  EXPECT_EQ(warnings, 1);
  EXPECT_EQ(clock_.Now() - begin, config_.row_timeout);
  EXPECT_THAT(std::string(Message(fetcher_->head().error)),
              HasSubstr("w0 at address0: /data of w0 is not mounted"));
}

class BackPressureTest : public FetcherFaultTest {
 protected:
  void AddSupplied(size_t rows, size_t bytes) {
    std::vector<uint64_t> samples(rows);
    std::iota(samples.begin(), samples.end(), 0);
    auto layout =
        std::make_shared<BatchLayout>(schema_, static_cast<uint32_t>(rows));
    pool_ = BatchPool::Create(layout->bytes, 4);
    auto supplied = std::make_shared<Supplied>(samples);
    for (const uint64_t sample : samples)
      supplied->Set(sample, {{.bytes = std::string(bytes, 'x'), .shape = {}}});
    auto step = std::make_shared<Step>(
        0, next_step_++, *RowMap::Create({}, static_cast<uint32_t>(rows)),
        samples, layout, *pool_->Take());
    step->supplied = supplied;
    fetcher_->AddStep(std::move(step), clock_.Now());
  }
  static uint64_t BytesOf(const std::vector<Action>& actions) {
    uint64_t bytes = 0;
    for (const Action& action : actions) bytes += action.supplied_bytes;
    return bytes;
  }
};

TEST_F(BackPressureTest, AWorkerWithoutRoomIsAskedForLessAndLater) {
  config_.max_request_bytes = 100;
  config_.max_stream_bytes = 1600;
  Begin(1);
  AddSupplied(32, 100);
  auto actions = Decide();
  EXPECT_EQ(BytesOf(actions), 1600u);
  // One of the open requests is refused: the limit becomes half of them.
  Fail(actions[0], absl::StatusCode::kResourceExhausted, "no room");
  for (size_t i = 1; i < actions.size(); ++i)
    Fail(actions[i], absl::StatusCode::kResourceExhausted, "no room");
  EXPECT_TRUE(Decide().empty()) << "later";
  clock_.Advance(config_.backoff_min);
  actions = Decide();
  EXPECT_GE(BytesOf(actions), 100u);
  EXPECT_LE(BytesOf(actions), 800u) << "less";
  // With each answer the limit grows a little.
  size_t rounds = 0;
  while (!fetcher_->head().complete() && ++rounds < 100) {
    const uint64_t before = BytesOf(actions);
    for (const Action& action : actions) EXPECT_TRUE(Answer(action).ok());
    actions = Decide();
    std::erase_if(actions, [](const Action& a) { return a.rows.empty(); });
    EXPECT_LE(BytesOf(actions), 2 * before + 100);
  }
  ExpectHeadIsRight();
  EXPECT_TRUE(std::exchange(decided_.warning, {}).empty());
}

}  // namespace
}  // namespace leat::client
