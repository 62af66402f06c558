// SPDX-License-Identifier: Apache-2.0
//
// The Fetcher: late, silent and broken workers.
#include "tests/client/fetch/fetcher_fixture.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

TEST_F(FetcherTest, LateRowsOfTheHeadAreHedgedOnlyWhileSomebodyWaits) {
  Begin(2);
  AddStep({0, 1});
  AddStep({2, 3});
  const auto first = Decide();
  ASSERT_EQ(first.size(), 2u);
  clock_.Advance(config_.hedge_cold * 2);
  EXPECT_TRUE(Decide().empty());  // the trainer is busy
  fetcher_->set_waiting(true);
  const auto hedges = Decide();
  ASSERT_EQ(hedges.size(), 2u);  // silent: the next step's rows move too
  EXPECT_EQ(WorkerOf(hedges[0]), "w1");
  EXPECT_EQ(fetcher_->counters().hedged_rows, 4u);
  EXPECT_TRUE(Answer(hedges[0]).ok());
  ExpectHeadIsRight();
  // The late answer is dropped; nothing is copied twice.
  EXPECT_TRUE(Answer(first[0]).ok());
  EXPECT_EQ(fetcher_->counters().duplicate_rows, 2u);
  EXPECT_EQ(fetcher_->counters().payload_copies, 2u);
}

TEST_F(FetcherTest, BusyWorkerIsHedgedRowByRowAndNotSuspected) {
  Begin(2);
  AddStep({0, 1});
  AddStep({2, 3});
  const auto first = Decide();
  fetcher_->set_waiting(true);
  clock_.Advance(config_.hedge_cold - milliseconds(1));
  EXPECT_TRUE(Answer(first[0], {0}).ok());  // alive
  clock_.Advance(milliseconds(2));
  const auto hedges = Decide();
  ASSERT_EQ(hedges.size(), 1u);
  EXPECT_EQ(hedges[0].rows, std::vector<uint32_t>{1});
  EXPECT_FALSE(fetcher_->table().endpoints()[0].silent());
}

TEST_F(FetcherTest, SuspectIsTrustedAgainWhenItDelivers) {
  Begin(2);
  AddStep({0});
  const auto first = Decide();
  fetcher_->set_waiting(true);
  clock_.Advance(config_.hedge_cold);
  const auto hedge = Decide();
  ASSERT_EQ(hedge.size(), 1u);
  EXPECT_TRUE(fetcher_->table().endpoints()[0].silent());
  EXPECT_TRUE(Answer(first[0]).ok());  // it was only slow
  EXPECT_FALSE(fetcher_->table().endpoints()[0].silent());
  // The other request is withdrawn.
  const auto actions = Decide();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_TRUE(actions[0].rows.empty());
  EXPECT_EQ(actions[0].request_id, hedge[0].request_id);
  ExpectHeadIsRight();
  AddStep({1});
  EXPECT_EQ(WorkerOf(Decide()[0]), "w0");
}

TEST_F(FetcherTest, OnlyWorkerIsNeverSuspectAndNothingSpins) {
  Begin(1);
  AddStep({0});
  Decide();
  fetcher_->set_waiting(true);
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(config_.hedge_cold);
    EXPECT_TRUE(Decide().empty());
    EXPECT_GT(due(), clock_.Now());
  }
  EXPECT_FALSE(fetcher_->table().endpoints()[0].silent());
}

TEST_F(FetcherTest, SilenceFollowsTheObservedLatency) {
  Begin(2);
  for (int i = 0; i < 40; ++i) {
    AddStep({0});
    const auto actions = Decide();
    clock_.Advance(milliseconds(200));
    EXPECT_TRUE(Answer(actions[0]).ok());
    ExpectHeadIsRight();
  }
  AddStep({0});
  Decide();
  fetcher_->set_waiting(true);
  clock_.Advance(milliseconds(290));
  EXPECT_TRUE(Decide().empty());
  EXPECT_LE(due(), clock_.Now() + milliseconds(10));
  clock_.Advance(milliseconds(10));
  EXPECT_EQ(Decide().size(), 1u);
}

TEST_F(FetcherTest, StoppedAnswerIsTakenOverAndItsRestIsNotWritten) {
  Begin(2);
  AddStep({0, 1});
  const auto first = Decide();
  v1::RowsResponse begun = Header(first[0], {0, 1});
  const uint64_t garbage = 0xdeadbeef;
  EXPECT_TRUE(Piece(*first[0].stream, begun, {&garbage, 1}).ok());
  fetcher_->set_waiting(true);
  clock_.Advance(config_.hedge_cold * 2);
  const auto hedge = Decide();
  ASSERT_EQ(hedge.size(), 1u);
  EXPECT_TRUE(Answer(hedge[0]).ok());
  begun.set_offset(8);
  EXPECT_TRUE(Piece(*first[0].stream, begun, {&garbage, 1}).ok());
  ExpectHeadIsRight();
  EXPECT_EQ(fetcher_->counters().payload_copies, 4u);  // two of them wasted
}

TEST_F(FetcherTest, StreamLostInTheMiddleOfAnAnswerLosesNothing) {
  Begin(2);
  AddStep({0, 1});
  const auto first = Decide();
  const uint64_t sample = 0;
  EXPECT_TRUE(
      Piece(*first[0].stream, Header(first[0], {0, 1}), {&sample, 1}).ok());
  Close(first[0], Unavailable("killed"));
  const auto again = Decide();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].rows.size(), 2u);
  EXPECT_TRUE(Answer(again[0]).ok());
  ExpectHeadIsRight();
}

TEST_F(FetcherTest, SameAnswerTwiceIsDropped) {
  Begin(1);
  AddStep({0, 1, 2});
  const auto actions = Decide();
  EXPECT_TRUE(Answer(actions[0], {0, 1}).ok());
  EXPECT_TRUE(Answer(actions[0], {1, 0}).ok());
  EXPECT_EQ(fetcher_->counters().duplicate_rows, 2u);
  EXPECT_FALSE(fetcher_->head().complete());
  EXPECT_TRUE(Answer(actions[0], {2}).ok());
  ExpectHeadIsRight();
}

TEST_F(FetcherTest, WithdrawnWorkersRowsAreAskedElsewhere) {
  Begin(2);
  AddStep({10});
  EXPECT_EQ(WorkerOf(Decide()[0]), "w1");
  SetWorkers(1, 2);
  const auto again = Decide();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(WorkerOf(again[0]), "w0");
}

TEST_F(FetcherTest, FullStreamIsAskedForTheRestWhenItHasRoom) {
  config_.max_stream_rows = 2;
  Begin(1);
  AddStep({0, 1, 2});
  const auto first = Decide();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].rows.size(), 2u);
  EXPECT_TRUE(Decide().empty());
  EXPECT_TRUE(Answer(first[0]).ok());
  EXPECT_TRUE(fetcher_->TakeDirty());
  const auto rest = Decide();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_TRUE(Answer(rest[0]).ok());
  ExpectHeadIsRight();
}

TEST_F(FetcherTest, WhatBreaksTheProtocolIsRefused) {
  Begin(1);
  AddStep({0, 1, 2});
  const Action action = Decide()[0];
  WorkerStream& stream = *action.stream;
  const std::vector<uint64_t> data(100);
  const auto refused = [&](const v1::RowsResponse& header, size_t rows) {
    return absl::IsInvalidArgument(
        Piece(stream, header, std::span(data).first(rows)));
  };
  EXPECT_TRUE(refused(Header(action, {0, 7}), 2));  // not requested
  EXPECT_TRUE(refused(Header(action, {0, 0}), 2));  // twice
  EXPECT_TRUE(refused(Header(action, {}), 0));      // none
  EXPECT_TRUE(refused(Header(action, {0, 1}), 3));  // too much
  EXPECT_TRUE(refused(Header(action, {0, 1}), 0));  // nothing
  v1::RowsResponse header = Header(action, {0});
  header.set_payload_bytes(9);
  EXPECT_TRUE(refused(header, 1));
  header = Header(action, {0});
  header.set_offset(8);
  EXPECT_TRUE(refused(header, 1));
  header = Header(action, {0});
  header.set_request_id(1000);
  EXPECT_TRUE(refused(header, 1));
  Close(action, InvalidArgument("broke the protocol"));
  clock_.Advance(config_.backoff_max);
  const auto again = Decide();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE(Answer(again[0]).ok());
  ExpectHeadIsRight();
}

TEST_F(FetcherTest, RandomFaultsNeverLoseOrRepeatARow) {
  config_.max_row_errors = 60000;
  config_.row_timeout = std::chrono::hours(1000);
  config_.fault_backoff_max = config_.fault_backoff_min;
  config_.stream_idle = milliseconds(100);
  Begin(4);
  uint64_t random = 1;
  const auto draw = [&random](uint64_t n) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % n;
  };
  std::vector<Action> open;
  uint64_t version = 1;
  int delivered = 0, idle_streams = 0;
  std::vector<std::shared_ptr<WorkerStream>> retired;
  for (int round = 0; round < 200000 && delivered < 300; ++round) {
    while (fetcher_->num_steps() < 4) {
      std::vector<uint64_t> samples(16);
      for (uint64_t& sample : samples) sample = draw(kSamples);
      AddStep(samples);
    }
    fetcher_->set_waiting(draw(2) == 0);
    for (Action& action : Decide())
      if (!action.rows.empty() && !action.stream->closed)
        open.push_back(std::move(action));
    for (const WorkerEndpoint& endpoint : fetcher_->table().endpoints())
      ASSERT_FALSE(endpoint.state == EndpointState::kActive &&
                   endpoint.left_alone(clock_.Now()));
    // Also tables without any worker.
    if (draw(50) == 0) SetWorkers(static_cast<int>(draw(5)), ++version);
    for (const auto& idle : std::exchange(decided_.idle, {})) {
      retired.push_back(idle);
      ++idle_streams;
    }
    if (!retired.empty() && draw(5) == 0) {  // their ends come later
      fetcher_->Closed(*retired.front(), Cancelled("idle"), clock_.Now());
      retired.erase(retired.begin());
    }
    clock_.Advance(milliseconds(draw(40)));
    std::erase_if(open, [](const Action& a) { return a.stream->closed; });
    if (open.empty()) continue;
    const size_t pick = draw(open.size());
    const Action action = open[pick];
    switch (draw(16)) {
      case 0:
        Close(action, Unavailable("killed"));
        break;
      case 1:
        Fail(action, absl::StatusCode::kUnavailable, "draining");
        break;
      case 2: {  // half an answer
        const uint64_t sample = action.samples[0];
        v1::RowsResponse header = Header(action, action.rows);
        if (action.rows.size() > 1) {
          EXPECT_TRUE(Piece(*action.stream, header, {&sample, 1}).ok());
        }
        break;
      }
      case 3:
        EXPECT_TRUE(Answer(action).ok());  // and again later
        break;
      case 4:
        EXPECT_TRUE(FailAs(action, v1::FAULT_TRANSIENT,
                           absl::StatusCode::kUnavailable, "storage")
                        .ok());
        break;
      case 5:
        EXPECT_TRUE(FailAs(action, v1::FAULT_WORKER,
                           absl::StatusCode::kPermissionDenied, "no mount")
                        .ok());
        break;
      case 6:
        EXPECT_TRUE(FailAs(action, v1::FAULT_OBJECT,
                           absl::StatusCode::kNotFound, "not there",
                           action.samples[draw(action.samples.size())])
                        .ok());
        break;
      default:
        EXPECT_TRUE(Answer(action).ok());
        open.erase(open.begin() + static_cast<ptrdiff_t>(pick));
    }
    while (fetcher_->num_steps() > 0 && fetcher_->head().complete()) {
      ExpectHeadIsRight();
      ++delivered;
    }
  }
  EXPECT_GE(delivered, 300);
  EXPECT_GT(idle_streams, 0);
}

}  // namespace
}  // namespace leat::client
