// SPDX-License-Identifier: Apache-2.0
//
// The Fetcher: no wait is long while a worker is alive.
#include <map>

#include "tests/client/fetch/fetcher_fixture.h"

namespace leat::client {
namespace {

class FetcherWaitsTest : public FetcherTest {
 protected:
  enum class Is { kWell, kSilent, kAway, kFailing };
  using Workers = std::map<std::string, Is>;
  static constexpr Duration kAnswer = milliseconds(10);

  FetcherWaitsTest() { config_.hedge_burst = 0; }

  // Adds a step with rows of many shards.
  void AddWideStep() {
    std::vector<uint64_t> samples(64);
    for (size_t i = 0; i < samples.size(); ++i)
      samples[i] = (i * kShardSize + next_step_) % kSamples;
    AddStep(samples);
  }
  // Requests and answers once; rows come after kAnswer.
  void Round(const Workers& workers) {
    const std::vector<Action> actions = Decide();
    clock_.Advance(kAnswer);
    for (const Action& action : actions) {
      if (action.rows.empty() || action.stream->closed) continue;
      switch (workers.at(WorkerOf(action))) {
        case Is::kWell:
          EXPECT_TRUE(Answer(action).ok());
          break;
        case Is::kSilent:
          break;
        case Is::kAway:
          Close(action, Unavailable("connection refused"));
          break;
        case Is::kFailing:
          EXPECT_TRUE(FailAs(action, v1::FAULT_WORKER,
                             absl::StatusCode::kFailedPrecondition,
                             "not mounted")
                          .ok());
          break;
      }
    }
  }
  // Returns how long the consumer waits for the head, at most a minute.
  Duration Wait(const Workers& workers) {
    fetcher_->set_waiting(true);
    const MonotonicTime begin = clock_.Now();
    while (!fetcher_->head().complete() &&
           clock_.Now() < begin + std::chrono::minutes(1))
      Round(workers);
    const Duration waited = clock_.Now() - begin;
    if (fetcher_->head().complete()) ExpectHeadIsRight();
    return waited;
  }
  void Train(int steps, const Workers& workers) {
    for (int i = 0; i < steps; ++i) {
      AddWideStep();
      ASSERT_LE(Wait(workers), seconds(2)) << "step " << i;
    }
  }
};

TEST_F(FetcherWaitsTest, ASecondWorkerThatStopsSoonAfterTheFirst) {
  Begin(3);
  Train(40, {{"w0", Is::kWell}, {"w1", Is::kWell}, {"w2", Is::kWell}});
  Train(2, {{"w0", Is::kSilent}, {"w1", Is::kWell}, {"w2", Is::kWell}});
  ASSERT_TRUE(EndpointOf("w0").state == EndpointState::kStopped);
  Train(4, {{"w0", Is::kSilent}, {"w1", Is::kSilent}, {"w2", Is::kWell}});
}

// Their rows came from elsewhere and were withdrawn: they have nothing to send.
TEST_F(FetcherWaitsTest, SuspectsThatAreBackAreAskedWhenNobodyElseCanBe) {
  Begin(3);
  const Workers well = {
      {"w0", Is::kWell}, {"w1", Is::kWell}, {"w2", Is::kWell}};
  Train(40, well);
  for (const char* stops : {"w1", "w2"}) {
    Workers workers = well;
    workers[stops] = Is::kSilent;
    Train(1, workers);
  }
  ASSERT_TRUE(EndpointOf("w1").silent());
  ASSERT_TRUE(EndpointOf("w2").silent());
  Workers workers = well;
  workers["w0"] = Is::kSilent;
  Train(4, workers);
  EXPECT_FALSE(EndpointOf("w1").silent() && EndpointOf("w2").silent());
}

// One is away until its backoff is long. Then it is back, and the other one
// goes away.
TEST_F(FetcherWaitsTest, AWorkerThatIsBackIsAskedWhenNobodyElseCanBe) {
  for (const Is other : {Is::kAway, Is::kSilent, Is::kFailing}) {
    Begin(2);
    const Workers first = {{"w0", Is::kAway}, {"w1", Is::kWell}};
    const auto left_alone = [&] {
      return EndpointOf("w0").until - clock_.Now();
    };
    for (int i = 0; i < 5000 && left_alone() < milliseconds(4900); ++i)
      Train(1, first);
    ASSERT_GE(left_alone(), milliseconds(4900));
    Train(4, {{"w0", Is::kWell}, {"w1", other}});
  }
}

TEST_F(FetcherWaitsTest, StorageThatIsBackEverywhere) {
  Begin(2);
  AddWideStep();
  EXPECT_EQ(Wait({{"w0", Is::kFailing}, {"w1", Is::kFailing}}),
            std::chrono::minutes(1));
  EXPECT_LE(Wait({{"w0", Is::kFailing}, {"w1", Is::kWell}}), seconds(2));
}

// While all are away, few are asked early.
TEST_F(FetcherWaitsTest, ManyWorkersThatAreAllAwayAreNotAskedAtOnce) {
  constexpr int kWorkers = 100, kSeconds = 20;
  Begin(kWorkers);
  Workers workers;
  for (int i = 0; i < kWorkers; ++i)
    workers["w" + std::to_string(i)] = Is::kAway;
  AddWideStep();
  fetcher_->set_waiting(true);
  const auto failures = [&] {
    uint64_t all = 0;
    for (const WorkerEndpoint& endpoint : fetcher_->table().endpoints())
      all += endpoint.failures;
    return all;
  };
  const MonotonicTime begin = clock_.Now();
  while (clock_.Now() < begin + seconds(10)) Round(workers);
  const uint64_t before = failures();
  while (clock_.Now() < begin + seconds(10 + kSeconds)) Round(workers);
  // Each by its backoff of five seconds, plus a few early ones.
  EXPECT_LE(failures() - before,
            kWorkers * (kSeconds / 5 + 1) + kSeconds * uint64_t{33});
}

TEST_F(FetcherWaitsTest, SlowRowsOfBeforeDoNotMakePatience) {
  config_.hedge_burst = 4;
  Begin(2);
  for (int i = 0; i < 100; ++i) {
    AddStep({0});
    const auto actions = Decide();
    clock_.Advance(i % 10 == 0 ? Duration(seconds(4)) : Duration(kAnswer));
    EXPECT_TRUE(Answer(actions.at(0)).ok());
    ExpectHeadIsRight();
  }
  AddStep({0});
  EXPECT_LE(Wait({{"w0", Is::kSilent}, {"w1", Is::kWell}}), milliseconds(1100));
  // Unless most are as slow.
  Begin(2);
  for (int i = 0; i < 100; ++i) {
    AddStep({0});
    const auto actions = Decide();
    clock_.Advance(seconds(4));
    EXPECT_TRUE(Answer(actions.at(0)).ok());
    ExpectHeadIsRight();
  }
  AddStep({0});
  EXPECT_GT(Wait({{"w0", Is::kSilent}, {"w1", Is::kWell}}), seconds(4));
}

TEST_F(FetcherWaitsTest, WhereTheLateRowsAreIsSaidOnceAStep) {
  Begin(2);
  Train(2, {{"w0", Is::kWell}, {"w1", Is::kWell}});
  EXPECT_EQ(std::exchange(decided_.note, {}), "");
  AddStep({0, 10});
  fetcher_->set_waiting(true);
  std::string note;
  int notes = 0;
  for (int i = 0; i < 300; ++i) {
    Round({{"w0", Is::kSilent}, {"w1", Is::kAway}});
    if (std::string said = std::exchange(decided_.note, {}); !said.empty()) {
      ++notes;
      note = said;
    }
  }
  EXPECT_EQ(notes, 1);
  EXPECT_THAT(note, ::testing::HasSubstr("step 2: 0 of 2 rows have come"));
  EXPECT_THAT(note, ::testing::HasSubstr("w0: asked for 2, owes 2"));
  EXPECT_THAT(note, ::testing::HasSubstr("connection refused"));
}

// Certificates: both ends are probed, and then no time is lost.
TEST_F(FetcherWaitsTest, WhatTimeDoesNotMendEndsAtOnceWithTheCauseOfEach) {
  Begin(2);
  AddWideStep();
  fetcher_->set_waiting(true);
  const MonotonicTime begin = clock_.Now();
  std::optional<std::vector<EndpointTable::Unreached>> told;
  while (fetcher_->head().error.ok() && clock_.Now() < begin + seconds(30)) {
    Round({{"w0", Is::kAway}, {"w1", Is::kAway}});
    for (const std::string& address : std::exchange(decided_.looks, {}))
      fetcher_->Looked(address, {address + " wants a certificate", true});
    if (auto unreached = fetcher_->table().TakeUnreached(clock_.Now()))
      told = std::move(unreached);
  }
  EXPECT_LT(clock_.Now() - begin, milliseconds(1500));
  const absl::Status& error = fetcher_->head().error;
  EXPECT_TRUE(absl::IsFailedPrecondition(error)) << error;
  EXPECT_THAT(std::string(Message(error)),
              ::testing::HasSubstr(
                  "no worker can be reached; w0 at address0: address0 wants a "
                  "certificate; w1 at address1: address1 wants"));
  ASSERT_TRUE(told && told->size() == 2);
  EXPECT_EQ(told->at(1).worker, "w1");
  EXPECT_EQ(told->at(1).why, "address1 wants a certificate");
}

TEST_F(FetcherWaitsTest, WhatTimeMayMendIsToldAndWaitedOut) {
  Begin(2);
  AddWideStep();
  fetcher_->set_waiting(true);
  std::string warning;
  bool settled = true;  // for the first probe: a worker that was just ending
  const auto look = [&] {
    for (const std::string& address : std::exchange(decided_.looks, {}))
      fetcher_->Looked(address, {address + " refuses connections",
                                 std::exchange(settled, false)});
    if (std::string said = std::exchange(decided_.warning, {}); !said.empty()) {
      EXPECT_EQ(warning, "") << "twice";
      warning = said;
    }
  };
  const MonotonicTime begin = clock_.Now();
  while (clock_.Now() < begin + seconds(2)) {
    Round({{"w0", Is::kAway}, {"w1", Is::kAway}});
    look();
  }
  EXPECT_THAT(warning, ::testing::HasSubstr(
                           "no worker can be reached; workers: w0 at address0: "
                           "address0 refuses connections; w1"));
  EXPECT_EQ(fetcher_->table().TakeUnreached(clock_.Now())->size(), 2u);
  EXPECT_FALSE(fetcher_->table().TakeUnreached(clock_.Now())) << "it is known";
  clock_.Advance(seconds(11));
  EXPECT_TRUE(fetcher_->table().TakeUnreached(clock_.Now())) << "it lasts";
  while (clock_.Now() < begin + seconds(30)) {
    Round({{"w0", Is::kAway}, {"w1", Is::kAway}});
    look();
  }
  EXPECT_TRUE(fetcher_->head().error.ok());
  EXPECT_LE(Wait({{"w0", Is::kWell}, {"w1", Is::kWell}}), seconds(2));
  EXPECT_TRUE(fetcher_->table().TakeUnreached(clock_.Now())->empty());
}

// One worker without a trusted certificate does not block the other.
TEST_F(FetcherWaitsTest, OneThatIsNotReachedKeepsNoRowsFromTheOther) {
  Begin(2);
  const Workers workers = {{"w0", Is::kAway}, {"w1", Is::kWell}};
  for (int i = 0; i < 20; ++i) {
    Train(1, workers);
    for (const std::string& address : std::exchange(decided_.looks, {}))
      fetcher_->Looked(address, {"expired", true});
  }
  EXPECT_EQ(std::exchange(decided_.warning, {}), "");
  EXPECT_EQ(fetcher_->table().TakeUnreached(clock_.Now())->size(), 1u);
}

TEST_F(FetcherWaitsTest, AWaitWithoutAStepIsNobodysUntilThereIsOne) {
  Begin(1);
  const auto unplanned = [this] { return fetcher_->counters().unplanned; };
  fetcher_->BeginWait(clock_.Now());
  clock_.Advance(seconds(3));
  Decide();
  EXPECT_EQ(unplanned(), seconds(3));
  clock_.Advance(seconds(4));
  AddStep({0});
  EXPECT_EQ(unplanned(), seconds(7));
  const std::vector<Action> actions = Decide();
  clock_.Advance(seconds(5));
  fetcher_->EndWait(clock_.Now());
  EXPECT_EQ(unplanned(), seconds(7));
  clock_.Advance(seconds(6));  // it does not wait
  ASSERT_TRUE(Answer(actions.back()).ok());
  ExpectHeadIsRight();
  Decide();
  fetcher_->BeginWait(clock_.Now());
  clock_.Advance(seconds(2));
  fetcher_->EndWait(clock_.Now());
  clock_.Advance(seconds(2));
  Decide();
  EXPECT_EQ(unplanned(), seconds(9));
}

// Samples 0 and 1 are primarily w0's, 10 to 12 w1's.
TEST_F(FetcherWaitsTest, AWaitIsPutDownToTheWorkersThatOweItsRows) {
  Begin(2);
  AddStep({0, 1, 10, 11, 12});
  const auto wait = [this](int64_t s) {
    fetcher_->BeginWait(clock_.Now());
    clock_.Advance(seconds(s));
    fetcher_->EndWait(clock_.Now());
  };
  wait(7);  // nothing was requested yet
  const std::vector<Action> actions = Decide();
  EXPECT_EQ(fetcher_->open_rows(), 5u);
  EXPECT_EQ(fetcher_->num_streams(), 2u);
  EXPECT_EQ(fetcher_->num_ready(), 0u);
  wait(5);
  EXPECT_EQ(EndpointOf("w0").waited_for, seconds(2));
  EXPECT_EQ(EndpointOf("w1").waited_for, seconds(3));

  // One worker causes all of a wait for its rows alone.
  fetcher_->BeginWait(clock_.Now());
  clock_.Advance(seconds(5));
  const auto answer = [&](std::string_view worker) {
    for (const Action& action : actions)
      if (!action.rows.empty() && WorkerOf(action) == worker) {
        EXPECT_TRUE(Answer(action).ok());
      }
    Decide();
  };
  answer("w0");
  EXPECT_EQ(EndpointOf("w0").waited_for, seconds(4));
  EXPECT_EQ(EndpointOf("w1").waited_for, seconds(6));
  clock_.Advance(seconds(3));
  answer("w1");
  clock_.Advance(seconds(9));  // for a thread that is late to notice
  fetcher_->EndWait(clock_.Now());
  EXPECT_EQ(EndpointOf("w0").waited_for, seconds(4));
  EXPECT_EQ(EndpointOf("w1").waited_for, seconds(9));
  EXPECT_EQ(fetcher_->open_rows(), 0u);
  EXPECT_EQ(fetcher_->num_ready(), 1u);
}

}  // namespace
}  // namespace leat::client
