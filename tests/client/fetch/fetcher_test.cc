// SPDX-License-Identifier: Apache-2.0
//
// The Fetcher: where rows are requested, and how it handles failures.
#include "tests/client/fetch/fetcher_fixture.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

TEST_F(FetcherTest, RowsGoToTheirShardsFirstOwnersInOneMessageEach) {
  Begin(3);
  AddStep({0, 10, 20, 5, 15, 25});
  const auto actions = Decide();
  ASSERT_EQ(actions.size(), 3u);
  for (const Action& action : actions) {
    ASSERT_EQ(action.samples.size(), 2u);
    EXPECT_EQ(WorkerOf(action),
              "w" + std::to_string(action.samples[0] / kShardSize % 3));
    EXPECT_TRUE(Answer(action).ok());
  }
  ExpectHeadIsRight();
  EXPECT_EQ(fetcher_->counters().payload_copies, 6u);
  EXPECT_EQ(fetcher_->counters().duplicate_rows, 0u);
  EXPECT_TRUE(Decide().empty());
}

TEST_F(FetcherTest, RowsSpillToAnotherOwnerThatIsDoneMuchSooner) {
  Begin(2);
  // Both are measured: 1 ms per row.
  AddStep({0, 10});
  auto asked = Decide();
  clock_.Advance(milliseconds(1));
  for (const Action& action : asked) EXPECT_TRUE(Answer(action).ok());
  ExpectHeadIsRight();
  // 160 rows, all owned by the first worker: it gets no more than its fair
  // share and 1.5 times the other one's, with 8 rows for the hysteresis.
  std::vector<uint64_t> samples;
  for (uint64_t i = 0; i < 160; ++i) samples.push_back(20 * (i % 40) + i / 40);
  AddStep(samples);
  asked = Decide();
  ASSERT_EQ(asked.size(), 2u);
  std::map<std::string, size_t> rows;
  for (const Action& action : asked)
    rows[WorkerOf(action)] = action.rows.size();
  EXPECT_GT(rows["w1"], 10u);
  EXPECT_GT(rows["w0"], rows["w1"]);
  EXPECT_EQ(rows["w0"] + rows["w1"], 160u);
  for (const Action& action : asked) EXPECT_TRUE(Answer(action).ok());
  ExpectHeadIsRight();
}

// Other workers have not cached them.
TEST_F(FetcherTest, RowsStayWithTheirOwnersForAShortWait) {
  Begin(2);
  AddStep({0, 10});
  auto asked = Decide();
  clock_.Advance(milliseconds(1));
  for (const Action& action : asked) EXPECT_TRUE(Answer(action).ok());
  ExpectHeadIsRight();
  std::vector<uint64_t> samples;
  for (uint64_t i = 0; i < 60; ++i)
    samples.push_back(20 * (i % 40) + i / 40 + (i < 10 ? 10 : 0));
  AddStep(samples);
  std::map<std::string, size_t> rows;
  for (const Action& action : Decide())
    rows[WorkerOf(action)] = action.rows.size();
  EXPECT_EQ(rows["w0"], 50u);
  EXPECT_EQ(rows["w1"], 10u);
}

TEST_F(FetcherTest, RowsDoNotSpillToAWorkerThatIsAsBusyOrSlow) {
  Begin(2);
  AddStep({0, 10});
  auto asked = Decide();
  clock_.Advance(milliseconds(1));
  EXPECT_TRUE(Answer(asked[0]).ok());
  clock_.Advance(milliseconds(49));
  EXPECT_TRUE(Answer(asked[1]).ok());  // 50 times slower
  ExpectHeadIsRight();
  std::vector<uint64_t> samples;
  for (uint64_t i = 0; i < 40; ++i) samples.push_back(20 * i);
  AddStep(samples);
  asked = Decide();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(WorkerOf(asked[0]), "w0");
}

TEST_F(FetcherTest, LargeAsksAreCut) {
  config_.max_request_rows = 4;
  Begin(1);
  AddStep({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto actions = Decide();
  ASSERT_EQ(actions.size(), 3u);
  for (const Action& action : actions) EXPECT_TRUE(Answer(action).ok());
  ExpectHeadIsRight();
}

TEST_F(FetcherTest, WithoutAnAssignmentRowsWaitAndThenFailByName) {
  Begin(0);
  AddStep({1, 2});
  EXPECT_TRUE(Decide().empty());
  EXPECT_EQ(due(), clock_.Now() + seconds(60));
  clock_.Advance(seconds(60));
  Decide();
  EXPECT_THAT(std::string(Message(fetcher_->head().error)),
              HasSubstr("step 0: row 0 (sample 1) not delivered within 60 s, "
                        "nor 1 others of 2; workers: no assignment"));
}

TEST_F(FetcherTest, RowsWaitForTheFirstAssignment) {
  Begin(0);
  AddStep({1});
  EXPECT_TRUE(Decide().empty());
  SetWorkers(1, 1);
  EXPECT_TRUE(fetcher_->TakeDirty());
  EXPECT_EQ(Decide().size(), 1u);
}

TEST_F(FetcherTest, LostWorkersRowsGoToTheNextOwnerAtOnce) {
  Begin(3);
  AddStep({0, 1, 10});
  auto actions = Decide();
  ASSERT_EQ(actions.size(), 2u);
  Close(actions[0], Unavailable("connection reset"));
  const auto again = Decide();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(WorkerOf(again[0]), "w1");  // shard 0's second owner
  EXPECT_EQ(again[0].rows, actions[0].rows);
  EXPECT_EQ(fetcher_->counters().failed_over_rows, 2u);
  EXPECT_TRUE(Answer(again[0]).ok());
  EXPECT_TRUE(Answer(actions[1]).ok());
  ExpectHeadIsRight();
}

TEST_F(FetcherTest, ThenToAnyWorkerAndThenItWaitsForTheBackoff) {
  Begin(3);
  AddStep({0});
  std::set<std::string> asked;
  for (int i = 0; i < 3; ++i) {
    const auto actions = Decide();
    ASSERT_EQ(actions.size(), 1u) << i;
    asked.insert(WorkerOf(actions[0]));
    Close(actions[0], Unavailable("refused"));
  }
  EXPECT_EQ(asked.size(), 3u);
  EXPECT_TRUE(Decide().empty());
  EXPECT_EQ(due(), clock_.Now() + config_.backoff_min);
  clock_.Advance(config_.backoff_min);
  const auto actions = Decide();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_TRUE(Answer(actions[0]).ok());
  ExpectHeadIsRight();
}

TEST_F(FetcherTest, BackoffDoublesToItsLimitAndEndsWithADelivery) {
  Begin(1);
  AddStep({0});
  Duration expected = config_.backoff_min;
  for (int i = 0; i < 12; ++i) {
    const auto actions = Decide();
    ASSERT_EQ(actions.size(), 1u) << i;
    Close(actions[0], Unavailable("refused"));
    EXPECT_TRUE(Decide().empty());
    EXPECT_EQ(due() - clock_.Now(), expected) << i;
    clock_.Advance(expected);
    expected = std::min(expected * 2, config_.backoff_max);
  }
  const auto actions = Decide();
  EXPECT_TRUE(Answer(actions[0]).ok());
  EXPECT_EQ(fetcher_->table().endpoints()[0].failures_in_row, 0u);
}

TEST_F(FetcherTest, RefusalByEveryWorkerIsFinalSoon) {
  Begin(2);
  AddStep({0});
  int refusals = 0;
  while (fetcher_->head().error.ok() && refusals < 100) {
    for (const Action& action : Decide()) {
      ++refusals;
      Close(action, NotFound("no such job"));
    }
    clock_.Advance(config_.backoff_max);
  }
  EXPECT_LE(refusals, 9);
  EXPECT_TRUE(absl::IsNotFound(fetcher_->head().error));
  EXPECT_THAT(std::string(Message(fetcher_->head().error)),
              HasSubstr("every worker refuses; w0: no such job"));
}

TEST_F(FetcherTest, TimeoutNamesWorkersAndTheirErrors) {
  Begin(2);
  AddStep({0});
  Close(Decide()[0], Unavailable("connection reset"));
  ASSERT_EQ(Decide().size(), 1u);  // w1 never answers
  clock_.Advance(seconds(60));
  Decide();
  const std::string text(Message(fetcher_->head().error));
  EXPECT_THAT(text, HasSubstr("w0 at address0: connection reset"));
  EXPECT_THAT(text, HasSubstr("w1 at address1: asked, no answer"));
}

TEST_F(FetcherTest, BadSampleIsFinalWithTheWorkersText) {
  Begin(2);
  AddStep({0, 1});
  Fail(Decide()[0], absl::StatusCode::kDataLoss, "a/b.jpg: truncated");
  EXPECT_TRUE(absl::IsDataLoss(fetcher_->head().error));
  EXPECT_THAT(std::string(Message(fetcher_->head().error)),
              HasSubstr("step 0: a/b.jpg: truncated (worker w0)"));
}

// The trainer may take long to come to the step.
TEST_F(FetcherTest, ARowThatFailedForGoodIsNotAskedForAgain) {
  Begin(2);
  AddStep({0});
  AddStep({1, 15});
  const std::vector<Action> actions = Decide();
  ASSERT_EQ(actions.size(), 3u);
  EXPECT_TRUE(FailAs(actions[1], v1::FAULT_SAMPLE, absl::StatusCode::kDataLoss,
                     "a/b.jpg: truncated")
                  .ok());
  clock_.Advance(seconds(1));
  EXPECT_THAT(Decide(), testing::IsEmpty());
  EXPECT_TRUE(Answer(actions[0]).ok());
  ExpectHeadIsRight();  // steps before it are delivered
  EXPECT_TRUE(absl::IsDataLoss(fetcher_->head().error));
  fetcher_->set_waiting(true);
  clock_.Advance(seconds(10));
  EXPECT_THAT(Decide(), testing::IsEmpty());
}

TEST_F(FetcherTest, ErrorOfTheWorkerGoesToAnother) {
  Begin(2);
  AddStep({0, 1});
  Fail(Decide()[0], absl::StatusCode::kUnavailable, "draining");
  EXPECT_TRUE(fetcher_->head().error.ok());
  const auto again = Decide();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(WorkerOf(again[0]), "w1");
  EXPECT_TRUE(Answer(again[0]).ok());
  ExpectHeadIsRight();
}

TEST_F(FetcherTest, ErrorsOfWorkersAreNotRetriedForEver) {
  Begin(2);
  AddStep({0});
  int requests = 0;
  while (fetcher_->head().error.ok() && requests < 100) {
    for (const Action& action : Decide()) {
      ++requests;
      Fail(action, absl::StatusCode::kInternal, "boom");
    }
    clock_.Advance(config_.backoff_max);
  }
  EXPECT_EQ(requests, static_cast<int>(config_.max_row_errors));
  EXPECT_THAT(std::string(Message(fetcher_->head().error)), HasSubstr("boom"));
}

}  // namespace
}  // namespace leat::client
