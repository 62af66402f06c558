// SPDX-License-Identifier: Apache-2.0
//
// The Fetcher: for how long answers wait for each other on the network.
#include <deque>
#include <functional>
#include <utility>

#include "tests/client/fetch/fetcher_fixture.h"

namespace leat::client {
namespace {

// Four steps are on their way at all times.
class FetcherTripsTest : public FetcherTest {
 protected:
  // Answers `steps` steps of one row. `comes`: the time of each answer, for its
  // number and the time of its request. The worker has it for a tenth of that.
  void Train(int steps,
             const std::function<MonotonicTime(int, MonotonicTime)>& comes) {
    Begin(1);
    std::deque<std::pair<Action, MonotonicTime>> asked;
    for (int step = 0; step < steps; ++step) {
      while (asked.size() < 4) {
        AddStep({0});
        for (const Action& action : Decide())
          if (!action.rows.empty()) asked.emplace_back(action, clock_.Now());
      }
      const auto [action, at] = asked.front();
      asked.pop_front();
      const MonotonicTime now = std::max(clock_.Now(), comes(step, at));
      clock_.Advance(now - clock_.Now());
      v1::RowsResponse header = Header(action, action.rows);
      header.set_worker_us(1000);
      const std::vector<uint64_t> samples = {0};
      ASSERT_TRUE(Piece(*action.stream, header, samples).ok());
      Decide();
      ExpectHeadIsRight();
    }
  }
  // Returns the part of the time of answers in which they were queued.
  double Queued() const {
    const AnswerTimes& answers = fetcher_->counters().answers;
    EXPECT_EQ(answers.queued, EndpointOf("w0").answers.queued);
    return std::chrono::duration<double>(answers.queued) /
           std::chrono::duration<double>(answers.all);
  }
};

TEST_F(FetcherTripsTest, OnASlowLinkAnswersWaitForEachOther) {
  MonotonicTime free = clock_.Now();
  Train(100, [&](int, MonotonicTime asked) {
    return free = std::max(free, asked + milliseconds(2)) + milliseconds(100);
  });
  EXPECT_GT(Queued(), 0.7);
}

TEST_F(FetcherTripsTest, OverALongDistanceAnswersDoNotWait) {
  Train(100,
        [](int, MonotonicTime asked) { return asked + milliseconds(400); });
  EXPECT_LT(Queued(), 0.02);
}

// The time at the worker is not the network's.
TEST_F(FetcherTripsTest, AFarAnswerThatIsLateByAFewMillisecondsIsNotQueued) {
  Train(100, [](int step, MonotonicTime asked) {
    return asked + milliseconds(1 + step % 9);
  });
  EXPECT_EQ(Queued(), 0);
}

// A window of one step: only the stream's first message shows the distance.
TEST_F(FetcherTripsTest, TheFirstMessageOfAStreamShowsItsDistance) {
  Begin(1);
  AddStep({0, 1});
  const std::vector<Action> actions = Decide();
  const Action& action = actions.back();
  clock_.Advance(milliseconds(30));
  ASSERT_TRUE(fetcher_->leases().Opened(*action.stream, {}, clock_.Now()).ok());
  clock_.Advance(milliseconds(970));
  v1::RowsResponse header = Header(action, action.rows);
  header.set_worker_us(500'000);
  const std::vector<uint64_t> samples = {0, 1};
  ASSERT_TRUE(Piece(*action.stream, header, samples).ok());
  EXPECT_EQ(fetcher_->counters().answers.all, seconds(1));
  EXPECT_EQ(fetcher_->counters().answers.queued, milliseconds(470));
}

// Answers of an older release do not say how long the worker had them.
TEST_F(FetcherTripsTest, WithoutTheTimeAtTheWorkerNothingIsCounted) {
  Begin(1);
  AddStep({0});
  const std::vector<Action> actions = Decide();
  clock_.Advance(seconds(1));
  ASSERT_TRUE(Answer(actions.back()).ok());
  EXPECT_EQ(fetcher_->counters().answers.all, Duration(0));
}

}  // namespace
}  // namespace leat::client
