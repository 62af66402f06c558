// SPDX-License-Identifier: Apache-2.0
//
// The Fetcher: tables that lack workers, very many workers, the hedging budget,
// and idle streams.
#include <map>
#include <set>

#include "tests/client/fetch/fetcher_fixture.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

class FetcherPeersTest : public FetcherTest {
 protected:
  std::vector<Action> Requests() {
    std::vector<Action> actions = Decide();
    std::erase_if(actions, [](const Action& a) { return a.rows.empty(); });
    return actions;
  }
  // Lets each worker deliver a row.
  void MeetAll(int workers) {
    std::vector<uint64_t> samples;
    for (int i = 0; i < workers; ++i)
      samples.push_back(static_cast<uint64_t>(i) * kShardSize);
    AddStep(samples);
    for (const Action& action : Requests()) EXPECT_TRUE(Answer(action).ok());
    ExpectHeadIsRight();
  }
  // Advances to the time when the Fetcher has something to do.
  void Pass() {
    ASSERT_GT(due(), clock_.Now());
    clock_.Advance(due() - clock_.Now());
  }
};

TEST_F(FetcherPeersTest, ATableWithoutWorkersChangesNothing) {
  Begin(2);
  AddStep({0, 10});
  const auto first = Requests();
  SetWorkers(std::vector<int>{});
  EXPECT_TRUE(Requests().empty());
  EXPECT_TRUE(EndpointOf("w0").present);
  for (const Action& action : first) EXPECT_TRUE(Answer(action).ok());
  ExpectHeadIsRight();
  AddStep({0, 10});
  EXPECT_EQ(Requests().size(), 2u);
}

TEST_F(FetcherPeersTest, AWorkerThatTheTableLacksIsTheLastResort) {
  Begin(2);
  MeetAll(2);
  SetWorkers({8});
  SetWorkers({9});  // no longer in the table before, but on a stream that lives
  AddStep({0, 10});
  const auto first = Requests();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(WorkerOf(first[0]), "w9");
  Close(first[0], Unavailable("refused"));
  std::set<std::string> asked;
  for (const Action& action : Requests()) {
    asked.insert(WorkerOf(action));
    EXPECT_TRUE(Answer(action).ok());
  }
  EXPECT_TRUE(asked.contains("w0") || asked.contains("w1"));
  ExpectHeadIsRight();
}

TEST_F(FetcherPeersTest, SoIsOneThatTheTableBeforeNamed) {
  Begin(2);
  SetWorkers({9});
  AddStep({0});
  Close(Requests().at(0), Unavailable("refused"));
  const auto actions = Requests();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_NE(WorkerOf(actions[0]), "w9");
  EXPECT_TRUE(Answer(actions[0]).ok());
  ExpectHeadIsRight();
}

TEST_F(FetcherPeersTest, OneThatHasGoneWithItsStreamIsNot) {
  Begin(1);
  MeetAll(1);
  AddStep({0});
  Close(Requests().at(0), Unavailable("killed"));
  SetWorkers({9});
  SetWorkers({9});
  Close(Requests().at(0), Unavailable("refused"));
  EXPECT_TRUE(Requests().empty());
}

TEST_F(FetcherPeersTest, ATableTakesRowsFromAStreamOnlyForOneThatItNames) {
  config_.max_stream_rows = 2;
  Begin(3);
  MeetAll(3);
  AddStep({0, 10, 20});
  const auto first = Requests();
  ASSERT_EQ(first.size(), 3u);
  SetWorkers({9});  // it has room for two rows, and each of the others for one
  const auto moved = Requests();
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(WorkerOf(moved[0]), "w9");
  EXPECT_EQ(moved[0].rows.size(), 2u);
  Close(moved[0], Unavailable("refused"));
  EXPECT_TRUE(Requests().empty()) << "nor from one that it lacks to another";
  for (const Action& action : first) EXPECT_TRUE(Answer(action).ok());
  ExpectHeadIsRight();
}

TEST_F(FetcherPeersTest, RefusalByAllOfTheTableIsNotFinalWhileOthersAnswer) {
  Begin(1);
  MeetAll(1);
  SetWorkers({9});
  for (uint32_t i = 0; i < 2 * config_.max_refusals; ++i) {
    AddStep({0});
    for (const Action& action : Requests())
      if (WorkerOf(action) == "w9") Close(action, NotFound("no such job"));
    for (const Action& action : Requests()) EXPECT_TRUE(Answer(action).ok());
    ASSERT_TRUE(fetcher_->head().error.ok()) << fetcher_->head().error;
    ExpectHeadIsRight();
    clock_.Advance(config_.backoff_max);
  }
}

TEST_F(FetcherPeersTest, TenThousandWorkersAreNotLookedAtForEachRow) {
  constexpr int kWorkers = 10000;
  config_.max_stream_rows = 1;
  Begin(kWorkers);
  EXPECT_LE(fetcher_->table().visited(), 4u * kWorkers);
  uint64_t before = fetcher_->table().visited();
  SetWorkers(kWorkers, 2);
  EXPECT_LE(fetcher_->table().visited() - before, 4u * kWorkers);
  // 101 workers own the shards. Each takes one row; other workers get the rest.
  before = fetcher_->table().visited();
  std::vector<uint64_t> samples(1000);
  std::iota(samples.begin(), samples.end(), 0);
  AddStep(samples);
  auto requests = Requests();
  EXPECT_EQ(requests.size(), 1000u);
  EXPECT_LE(fetcher_->table().visited() - before, 8u * 1000 + 4u * kWorkers);
  // All of them fail.
  for (const Action& action : requests) Close(action, Unavailable("killed"));
  before = fetcher_->table().visited();
  requests = Requests();
  EXPECT_EQ(requests.size(), 1000u);
  EXPECT_LE(fetcher_->table().visited() - before, 16u * 1000 + 4u * kWorkers);
  for (const Action& action : requests) EXPECT_TRUE(Answer(action).ok());
  ExpectHeadIsRight();
}

TEST_F(FetcherPeersTest, PeersBeyondTheBoundAreForgottenButNotOnesInUse) {
  Begin(0);
  const auto numbers = [](int from) {
    std::vector<int> all(3000);
    std::iota(all.begin(), all.end(), from);
    return all;
  };
  SetWorkers(numbers(0));
  AddStep({0});
  const Action old = Requests().at(0);
  EXPECT_EQ(WorkerOf(old), "w0");
  for (int i = 1; i < 12; ++i) {
    SetWorkers(numbers(i * 3000));
    EXPECT_LE(fetcher_->table().endpoints().size(), 6001u) << i;
    // Every entry belongs to one worker, and all workers of the table are
    // there.
    std::set<std::string> present;
    for (const WorkerEndpoint& endpoint : fetcher_->table().endpoints())
      if (endpoint.present) present.insert(endpoint.ref.name);
    EXPECT_EQ(present.size(), 3000u);
    EXPECT_TRUE(present.contains("w" + std::to_string(i * 3000 + 2999)));
  }
  EXPECT_EQ(WorkerOf(old), "w0");
  EXPECT_TRUE(Answer(old).ok());
  ExpectHeadIsRight();
  AddStep({0});
  const Action asked = Requests().at(0);
  EXPECT_EQ(WorkerOf(asked), "w33000");
  EXPECT_TRUE(Answer(asked).ok());
  ExpectHeadIsRight();
}

TEST_F(FetcherPeersTest, AWorkerBeginsNoMoreAnswersThanItsBound) {
  config_.max_stream_groups = 2;
  Begin(1);
  AddStep({0, 1, 2, 3, 4, 5});
  const Action action = Requests().at(0);
  const uint64_t sample = 0;
  const auto begin = [&](uint32_t row) {
    return Piece(*action.stream, Header(action, {row, row + 1}), {&sample, 1});
  };
  EXPECT_TRUE(begin(0).ok());
  EXPECT_TRUE(begin(2).ok());
  const absl::Status third = begin(4);
  EXPECT_TRUE(absl::IsInvalidArgument(third));
  EXPECT_THAT(std::string(Message(third)), HasSubstr("2 groups begun"));
}

TEST_F(FetcherPeersTest, AColdStartIsNotAskedForTwice) {
  Begin(10);
  size_t rows = 0;
  for (int step = 0; step < 4; ++step) {
    std::vector<uint64_t> samples(200);
    std::iota(samples.begin(), samples.end(), 0);
    AddStep(samples);
    rows += samples.size();
  }
  size_t asked = 0;
  const MonotonicTime begin = clock_.Now();
  fetcher_->set_waiting(true);
  std::vector<Action> open;
  while (clock_.Now() < begin + seconds(5)) {
    for (Action& action : Requests()) {
      asked += action.rows.size();
      open.push_back(std::move(action));
    }
    if (!fetcher_->TakeDirty()) Pass();
  }
  EXPECT_GT(asked, rows) << "some are late";
  EXPECT_LE(asked, rows + rows / 10 + config_.hedge_burst);
  size_t suspects = 0;
  for (const WorkerEndpoint& endpoint : fetcher_->table().endpoints())
    suspects += endpoint.silent();
  EXPECT_LE(suspects, 1u) << "all are slow";
  for (const Action& action : open) EXPECT_TRUE(Answer(action).ok());
  for (int step = 0; step < 4; ++step) ExpectHeadIsRight();
}

TEST_F(FetcherPeersTest, AWorkerThatHasJustOpenedIsNotSilent) {
  Begin(2);
  AddStep({0, 1});
  const Action first = Requests().at(0);
  fetcher_->set_waiting(true);
  clock_.Advance(config_.hedge_cold - milliseconds(1));
  v1::Opened opened;
  EXPECT_TRUE(
      fetcher_->leases().Opened(*first.stream, opened, clock_.Now()).ok());
  clock_.Advance(milliseconds(2));
  Requests();
  EXPECT_FALSE(EndpointOf("w0").silent());
  clock_.Advance(config_.hedge_cold);
  Requests();
  EXPECT_TRUE(EndpointOf("w0").silent());
}

TEST_F(FetcherPeersTest, AWorkerThatStopsWhileOthersDeliverIsLeftAtOnce) {
  config_.hedge_burst = 4;
  Begin(2);
  std::vector<uint64_t> samples(400);
  std::iota(samples.begin(), samples.end(), 0);
  AddStep(samples);
  AddStep(samples);
  fetcher_->set_waiting(true);
  std::map<uint32_t, std::vector<Action>> asked;
  for (const Action& action : Requests())
    asked[action.stream->worker].push_back(action);
  clock_.Advance(milliseconds(500));
  for (const Action& action : asked[1]) EXPECT_TRUE(Answer(action).ok());
  clock_.Advance(milliseconds(500));
  size_t rows = 0;
  for (const Action& action : Requests()) {
    EXPECT_EQ(WorkerOf(action), "w1");
    rows += action.rows.size();
    EXPECT_TRUE(Answer(action).ok());
  }
  EXPECT_EQ(rows, 400u) << "of both steps";
  ExpectHeadIsRight();
  ExpectHeadIsRight();
}

TEST_F(FetcherPeersTest, MoreStoppedWorkersThanTheBudgetDoNotHoldAStepUp) {
  config_.hedge_burst = 4;
  Begin(20);
  MeetAll(20);
  std::vector<uint64_t> samples(1000);
  std::iota(samples.begin(), samples.end(), 0);
  AddStep(samples);
  fetcher_->set_waiting(true);
  // A quarter of them has stopped.
  const MonotonicTime begin = clock_.Now();
  while (!fetcher_->head().complete()) {
    ASSERT_LT(clock_.Now(), begin + seconds(20));
    const auto requests = Requests();
    clock_.Advance(milliseconds(10));
    for (const Action& action : requests)
      if (action.stream->worker >= 5) {
        EXPECT_TRUE(Answer(action).ok());
      }
  }
  ExpectHeadIsRight();
}

TEST_F(FetcherPeersTest, AnIdleStreamIsClosedAndOpenedAgainWhenNeeded) {
  config_.row_timeout = std::chrono::hours(1);
  Begin(2);
  MeetAll(2);
  AddStep({0});
  const Action busy = Requests().at(0);
  const std::shared_ptr<WorkerStream> idle = EndpointOf("w1").stream;
  ASSERT_NE(idle, nullptr);
  EXPECT_TRUE(std::exchange(decided_.idle, {}).empty());
  EXPECT_LE(due(), clock_.Now() + config_.stream_idle);
  clock_.Advance(config_.stream_idle - milliseconds(1));
  Requests();
  EXPECT_TRUE(std::exchange(decided_.idle, {}).empty());
  clock_.Advance(milliseconds(1));
  Requests();
  const auto streams = std::exchange(decided_.idle, {});
  ASSERT_EQ(streams.size(), 1u);
  EXPECT_EQ(streams[0], idle);
  EXPECT_NE(EndpointOf("w0").stream, nullptr) << "it owes a row";
  EXPECT_GT(due(), clock_.Now()) << "nothing spins";
  AddStep({10});
  const auto again = Requests();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(WorkerOf(again[0]), "w1");
  EXPECT_NE(again[0].stream, idle);
  // The end of the old stream is no failure, and does not affect the new one.
  fetcher_->Closed(*idle, Cancelled("idle"), clock_.Now());
  EXPECT_EQ(EndpointOf("w1").failures, 0u);
  EXPECT_EQ(EndpointOf("w1").stream, again[0].stream);
  EXPECT_TRUE(Answer(busy).ok());
  EXPECT_TRUE(Answer(again[0]).ok());
  ExpectHeadIsRight();
  ExpectHeadIsRight();
}

}  // namespace
}  // namespace leat::client
