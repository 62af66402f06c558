// SPDX-License-Identifier: Apache-2.0
#include "rpc/server/watchdog.h"

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "gtest/gtest.h"

namespace leat::rpc {
namespace {

using Answer = Deafness::Answer;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Questions every 10 s, with 10 s for an answer.
class DeafnessTest : public ::testing::Test {
 protected:
  // Asks a question `late` after its time; its end is known after `took`.
  bool Ask(Answer answer, Duration took, Duration late = Duration::zero()) {
    const MonotonicTime due = now_;
    now_ = due + late + took;
    return deafness_.Add(
        {.due = due, .started = due + late, .ended = now_, .answer = answer});
  }
  Deafness deafness_{{.interval = seconds(10), .misses = 3}};
  MonotonicTime now_{seconds(1000)};
};

TEST_F(DeafnessTest, ThreeMissesInARowAreDeaf) {
  EXPECT_FALSE(Ask(Answer::kMissed, seconds(10)));
  EXPECT_FALSE(Ask(Answer::kMissed, milliseconds(10'400)));
  EXPECT_TRUE(Ask(Answer::kMissed, seconds(0)));
}

TEST_F(DeafnessTest, AnAnswerForgivesTheMissesBefore) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(Ask(Answer::kMissed, seconds(10)));
    EXPECT_FALSE(Ask(Answer::kMissed, seconds(10)));
    EXPECT_FALSE(Ask(Answer::kCame, milliseconds(9'900)));
  }
}

TEST_F(DeafnessTest, AQuestionThatCouldNotBeAskedSaysNothing) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(Ask(Answer::kMissed, seconds(10)));
    EXPECT_FALSE(Ask(Answer::kMissed, seconds(10)));
    EXPECT_FALSE(Ask(Answer::kCouldNotAsk, seconds(0)));
  }
}

TEST_F(DeafnessTest, AStoppedProcessIsNotDeaf) {
  // The process was suspended during the question.
  EXPECT_FALSE(Ask(Answer::kMissed, seconds(10)));
  EXPECT_FALSE(Ask(Answer::kMissed, seconds(10)));
  EXPECT_FALSE(Ask(Answer::kMissed, seconds(60)));
  // The process was suspended before the question.
  EXPECT_FALSE(Ask(Answer::kMissed, seconds(10)));
  EXPECT_FALSE(Ask(Answer::kMissed, seconds(10)));
  EXPECT_FALSE(Ask(Answer::kMissed, seconds(10), /*late=*/seconds(60)));
  // It is still deaf when it runs again.
  EXPECT_FALSE(Ask(Answer::kMissed, seconds(10)));
  EXPECT_FALSE(Ask(Answer::kMissed, seconds(10)));
  EXPECT_TRUE(Ask(Answer::kMissed, seconds(10)));
}

TEST(Watchdog, SaysOnceThatNobodyIsAnswered) {
  std::mutex mu;
  std::condition_variable changed;
  int asked = 0, deaf = 0;
  const auto watchdog = Watchdog::Start(
      {.interval = milliseconds(1)},
      [&](MonotonicTime) {
        std::lock_guard<std::mutex> lock(mu);
        ++asked;
        // The first questions are answered.
        return asked <= 4 ? Answer::kCame : Answer::kMissed;
      },
      [&] {
        std::lock_guard<std::mutex> lock(mu);
        ++deaf;
        changed.notify_all();
      });
  ASSERT_TRUE(watchdog.ok()) << watchdog.status();
  std::unique_lock<std::mutex> lock(mu);
  ASSERT_TRUE(changed.wait_for(lock, seconds(20), [&] { return deaf > 0; }));
  EXPECT_EQ(asked, 7);
  EXPECT_EQ(deaf, 1);
}

TEST(Watchdog, IsAliveAfterEachQuestionThatWasNotMissed) {
  std::atomic<int> asked = 0, alive = 0, deaf = 0;
  {
    std::mutex mu;
    std::condition_variable ended;
    const auto watchdog = Watchdog::Start(
        {.interval = milliseconds(1), .on_alive = [&] { ++alive; }},
        [&](MonotonicTime) {
          switch (++asked) {
            case 1:
              return Answer::kCame;
            case 2:
              return Answer::kMissed;
            case 3:
              return Answer::kCouldNotAsk;
            default:
              return Answer::kMissed;
          }
        },
        [&] {
          std::lock_guard<std::mutex> lock(mu);
          ++deaf;
          ended.notify_all();
        });
    ASSERT_TRUE(watchdog.ok()) << watchdog.status();
    std::unique_lock<std::mutex> lock(mu);
    ASSERT_TRUE(ended.wait_for(lock, seconds(20), [&] { return deaf > 0; }));
  }
  EXPECT_EQ(asked, 6);
  EXPECT_EQ(alive, 2);
}

TEST(Watchdog, StopsBetweenQuestions) {
  std::atomic<int> asked = 0;
  {
    const auto watchdog = Watchdog::Start(
        {.interval = std::chrono::hours(1)},
        [&](MonotonicTime) {
          ++asked;
          return Answer::kMissed;
        },
        [] { FAIL(); });
    ASSERT_TRUE(watchdog.ok()) << watchdog.status();
  }
  EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace leat::rpc
