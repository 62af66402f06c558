// SPDX-License-Identifier: Apache-2.0
//
// The Fetcher with a clock that tests own and no network.
#include "client/fetcher.h"

#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;
using Action = Fetcher::Action;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kSamples = 1000;
constexpr uint64_t kShardSize = 10;
constexpr size_t kRowBytes = 8;  // the sample's number

v1::Assignment MakeAssignment(int workers, uint64_t version = 1) {
  v1::Assignment assignment;
  assignment.set_dataset_id("d");
  assignment.set_instance(7);
  assignment.set_version(version);
  for (int i = 0; i < workers; ++i) {
    v1::WorkerRef* worker = assignment.add_workers();
    worker->set_name("w" + std::to_string(i));
    worker->set_address("address" + std::to_string(i));
  }
  const int per_shard = std::min(workers, 2);
  assignment.set_owners_per_shard(static_cast<uint32_t>(per_shard));
  for (uint64_t shard = 0; shard < kSamples / kShardSize; ++shard)
    for (int i = 0; i < per_shard; ++i) {
      const auto owner =
          (shard + static_cast<uint64_t>(i)) % static_cast<uint64_t>(workers);
      assignment.mutable_owners()->push_back(static_cast<char>(owner));
      assignment.mutable_owners()->push_back(0);
    }
  return assignment;
}

class FetcherTest : public ::testing::Test {
 protected:
  FetcherTest() : shards_(*ShardTable::Uniform(kSamples, kShardSize)) {
    config_.row_timeout = seconds(60);
  }

  void Begin(int workers) {
    fetcher_.emplace(config_, shards_);
    if (workers > 0) SetWorkers(workers, 1);
  }
  void SetWorkers(int workers, uint64_t version) {
    fetcher_->SetTable(*AssignmentTable::FromProto(
        MakeAssignment(workers, version), "d", shards_.num_shards()));
  }
  void AddStep(std::vector<uint64_t> samples) {
    const auto rows = static_cast<uint32_t>(samples.size());
    auto layout = std::make_shared<BatchLayout>(schema_, rows);
    pool_ = BatchPool::Create(layout->bytes, 4);
    fetcher_->AddStep(
        std::make_shared<Step>(0, next_step_++, *RowMap::Create({}, rows),
                               samples, layout, *pool_->Take()),
        clock_.Now());
  }
  std::vector<Action> Decide() { return fetcher_->Decide(clock_.Now()); }
  static const std::string& Worker(const Fetcher& fetcher,
                                   const Action& action) {
    return fetcher.peers()[action.lane->worker].ref.name;
  }
  std::string WorkerOf(const Action& action) const {
    return Worker(*fetcher_, action);
  }

  v1::RowsResponse Header(const Action& action,
                          const std::vector<uint32_t>& rows) {
    v1::RowsResponse header;
    header.set_ask_id(action.ask_id);
    header.set_group_id(next_group_++);
    header.mutable_rows()->Add(rows.begin(), rows.end());
    header.set_payload_bytes(rows.size() * kRowBytes);
    return header;
  }
  static uint64_t SampleOf(const Action& action, uint32_t row) {
    for (size_t i = 0; i < action.rows.size(); ++i)
      if (action.rows[i] == row) return action.samples[i];
    return ~0ull;
  }
  // One piece: as the engine does it.
  absl::Status Piece(Lane& lane, const v1::RowsResponse& header,
                     std::span<const uint64_t> samples) {
    const auto bytes = std::as_bytes(samples);
    auto piece = fetcher_->Begin(lane, header, bytes.size(), clock_.Now());
    if (!piece.ok()) return piece.status();
    if (!piece->has_value()) return absl::OkStatus();
    Group& group = *(*piece)->group;
    group.step->Scatter(group.indices, group.mine, (*piece)->offset, bytes);
    fetcher_->End(lane, **piece, clock_.Now());
    return absl::OkStatus();
  }
  absl::Status Answer(const Action& action, const std::vector<uint32_t>& rows) {
    std::vector<uint64_t> samples;
    for (const uint32_t row : rows) samples.push_back(SampleOf(action, row));
    return Piece(*action.lane, Header(action, rows), samples);
  }
  absl::Status Answer(const Action& action) {
    return Answer(action, action.rows);
  }
  void Fail(const Action& action, absl::StatusCode code,
            const std::string& text) {
    v1::RowsResponse header = Header(action, action.rows);
    header.set_payload_bytes(0);
    header.mutable_error()->set_code(static_cast<int32_t>(code));
    header.mutable_error()->set_message(text);
    EXPECT_TRUE(Piece(*action.lane, header, {}).ok());
  }
  void Close(const Action& action, const absl::Status& status) {
    const std::shared_ptr<Lane> lane = action.lane;
    fetcher_->Closed(*lane, status, clock_.Now());
  }
  // The head has every sample in its place.
  void ExpectHeadIsRight() {
    ASSERT_TRUE(fetcher_->head().complete());
    const auto step = fetcher_->PopHead(clock_.Now());
    for (size_t i = 0; i < step->samples.size(); ++i) {
      uint64_t sample = 0;
      std::memcpy(&sample, step->buffer.data() + i * kRowBytes, kRowBytes);
      EXPECT_EQ(sample, step->samples[i]) << "row " << i;
    }
  }

  const ShardTable shards_;
  const BatchSchema schema_{{Field{"sample", DType::kInt64, {}, kRowBytes}}};
  FetcherConfig config_;
  FakeClock clock_;
  std::optional<Fetcher> fetcher_;
  std::shared_ptr<BatchPool> pool_;
  uint64_t next_step_ = 0;
  uint64_t next_group_ = 1;
};

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

TEST_F(FetcherTest, LargeAsksAreCut) {
  config_.max_ask_rows = 4;
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
  EXPECT_EQ(fetcher_->due(), clock_.Now() + seconds(60));
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
  EXPECT_EQ(fetcher_->due(), clock_.Now() + config_.backoff_min);
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
    EXPECT_EQ(fetcher_->due() - clock_.Now(), expected) << i;
    clock_.Advance(expected);
    expected = std::min(expected * 2, config_.backoff_max);
  }
  const auto actions = Decide();
  EXPECT_TRUE(Answer(actions[0]).ok());
  EXPECT_EQ(fetcher_->peers()[0].failures_in_row, 0u);
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
              HasSubstr("row 0 (sample 0): a/b.jpg: truncated (worker w0)"));
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
  int asks = 0;
  while (fetcher_->head().error.ok() && asks < 100) {
    for (const Action& action : Decide()) {
      ++asks;
      Fail(action, absl::StatusCode::kInternal, "boom");
    }
    clock_.Advance(config_.backoff_max);
  }
  EXPECT_EQ(asks, static_cast<int>(config_.max_row_errors));
  EXPECT_THAT(std::string(Message(fetcher_->head().error)), HasSubstr("boom"));
}

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
  EXPECT_FALSE(fetcher_->peers()[0].suspect);
}

TEST_F(FetcherTest, SuspectIsTrustedAgainWhenItDelivers) {
  Begin(2);
  AddStep({0});
  const auto first = Decide();
  fetcher_->set_waiting(true);
  clock_.Advance(config_.hedge_cold);
  const auto hedge = Decide();
  ASSERT_EQ(hedge.size(), 1u);
  EXPECT_TRUE(fetcher_->peers()[0].suspect);
  EXPECT_TRUE(Answer(first[0]).ok());  // it only was slow
  EXPECT_FALSE(fetcher_->peers()[0].suspect);
  // The other ask is withdrawn.
  const auto actions = Decide();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_TRUE(actions[0].rows.empty());
  EXPECT_EQ(actions[0].ask_id, hedge[0].ask_id);
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
    EXPECT_GT(fetcher_->due(), clock_.Now());
  }
  EXPECT_FALSE(fetcher_->peers()[0].suspect);
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
  EXPECT_LE(fetcher_->due(), clock_.Now() + milliseconds(10));
  clock_.Advance(milliseconds(10));
  EXPECT_EQ(Decide().size(), 1u);
}

TEST_F(FetcherTest, StoppedAnswerIsTakenOverAndItsRestIsNotWritten) {
  Begin(2);
  AddStep({0, 1});
  const auto first = Decide();
  v1::RowsResponse begun = Header(first[0], {0, 1});
  const uint64_t garbage = 0xdeadbeef;
  EXPECT_TRUE(Piece(*first[0].lane, begun, {&garbage, 1}).ok());
  fetcher_->set_waiting(true);
  clock_.Advance(config_.hedge_cold * 2);
  const auto hedge = Decide();
  ASSERT_EQ(hedge.size(), 1u);
  EXPECT_TRUE(Answer(hedge[0]).ok());
  begun.set_offset(8);
  EXPECT_TRUE(Piece(*first[0].lane, begun, {&garbage, 1}).ok());
  ExpectHeadIsRight();
  EXPECT_EQ(fetcher_->counters().payload_copies, 4u);  // two of them wasted
}

TEST_F(FetcherTest, StreamLostInTheMiddleOfAnAnswerLosesNothing) {
  Begin(2);
  AddStep({0, 1});
  const auto first = Decide();
  const uint64_t sample = 0;
  EXPECT_TRUE(
      Piece(*first[0].lane, Header(first[0], {0, 1}), {&sample, 1}).ok());
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

TEST_F(FetcherTest, FullLaneIsAskedForTheRestWhenItHasRoom) {
  config_.max_lane_rows = 2;
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
  Lane& lane = *action.lane;
  const std::vector<uint64_t> data(100);
  const auto refused = [&](const v1::RowsResponse& header, size_t rows) {
    return absl::IsInvalidArgument(
        Piece(lane, header, std::span(data).first(rows)));
  };
  EXPECT_TRUE(refused(Header(action, {0, 7}), 2));  // not asked for
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
  header.set_ask_id(1000);
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
  Begin(4);
  uint64_t random = 1;
  const auto draw = [&random](uint64_t n) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % n;
  };
  std::vector<Action> open;
  uint64_t version = 1;
  int delivered = 0;
  for (int round = 0; round < 200000 && delivered < 300; ++round) {
    while (fetcher_->num_steps() < 4) {
      std::vector<uint64_t> samples(16);
      for (uint64_t& sample : samples) sample = draw(kSamples);
      AddStep(samples);
    }
    fetcher_->set_waiting(draw(2) == 0);
    for (Action& action : Decide())
      if (!action.rows.empty() && !action.lane->closed)
        open.push_back(std::move(action));
    if (draw(50) == 0) SetWorkers(1 + static_cast<int>(draw(4)), ++version);
    clock_.Advance(milliseconds(draw(40)));
    std::erase_if(open, [](const Action& a) { return a.lane->closed; });
    if (open.empty()) continue;
    const size_t pick = draw(open.size());
    const Action action = open[pick];
    switch (draw(12)) {
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
          EXPECT_TRUE(Piece(*action.lane, header, {&sample, 1}).ok());
        }
        break;
      }
      case 3:
        EXPECT_TRUE(Answer(action).ok());  // and again later
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
  EXPECT_EQ(delivered, 300);
}

TEST(AssignmentTable, RefusesWhatDoesNotFit) {
  const auto parse = [](const v1::Assignment& assignment) {
    return AssignmentTable::FromProto(assignment, "d", 100).status();
  };
  EXPECT_TRUE(parse(MakeAssignment(3)).ok());
  v1::Assignment other = MakeAssignment(3);
  other.set_dataset_id("e");
  EXPECT_TRUE(absl::IsInvalidArgument(parse(other)));
  v1::Assignment cut = MakeAssignment(3);
  cut.mutable_owners()->pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(parse(cut)));
  v1::Assignment wild = MakeAssignment(3);
  (*wild.mutable_owners())[1] = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(parse(wild)));
  v1::Assignment many = MakeAssignment(3);
  many.set_owners_per_shard(4000000000u);
  EXPECT_TRUE(absl::IsInvalidArgument(parse(many)));
  EXPECT_TRUE(parse(MakeAssignment(0)).ok());
}

TEST(AssignmentTable, NewerVersionOrAnotherInstanceReplaces) {
  const auto make = [](uint64_t instance, uint64_t version) {
    v1::Assignment assignment = MakeAssignment(1, version);
    assignment.set_instance(instance);
    return *AssignmentTable::FromProto(assignment, "d", 100);
  };
  const auto table = make(7, 5);
  EXPECT_TRUE(table->Replaces(nullptr));
  EXPECT_TRUE(make(7, 6)->Replaces(table.get()));
  EXPECT_FALSE(make(7, 5)->Replaces(table.get()));
  EXPECT_FALSE(make(7, 4)->Replaces(table.get()));
  EXPECT_TRUE(make(8, 1)->Replaces(table.get()));
}

}  // namespace
}  // namespace leat::client
