// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/retry.h"

#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Time passes in pauses and in attempts.
class RetryTest : public ::testing::Test {
 protected:
  absl::Status Run(absl::Duration timeout,
                   const std::function<absl::Status()>& attempt) {
    const Retry retry{.random = [this] { return draw_; },
                      .now = [this] { return now_; },
                      .pause =
                          [this](absl::Duration pause) {
                            pauses_.push_back(absl::ToInt64Milliseconds(pause));
                            now_ += pause;
                          }};
    return retry.Run(now_ + timeout, [&](absl::Duration left) {
      ++attempts_;
      left_ = left;
      return attempt();
    });
  }

  absl::Time now_ = absl::UnixEpoch();
  double draw_ = 0;
  int attempts_ = 0;
  absl::Duration left_;
  std::vector<int64_t> pauses_;
};

TEST_F(RetryTest, OnePassingAbsenceAfterTheOtherIsWaitedOut) {
  EXPECT_TRUE(Run(absl::Seconds(60), [&] {
                return attempts_ < 9 ? Unavailable("gone") : absl::OkStatus();
              }).ok());
  EXPECT_THAT(pauses_, ElementsAre(50, 100, 200, 400, 800, 1600, 2000, 2000));
  EXPECT_EQ(left_, absl::Seconds(60) - absl::Milliseconds(7150));
}

TEST_F(RetryTest, APartOfEachPauseIsDrawn) {
  draw_ = 0.5;
  Run(absl::Seconds(1), [&] { return Unavailable("gone"); }).IgnoreError();
  EXPECT_EQ(pauses_.front(), 37);
}

TEST_F(RetryTest, TheDeadlineIsNotPassedAndTheLastReasonIsTold) {
  const absl::Time end = now_ + absl::Seconds(10);
  const absl::Status status =
      Run(absl::Seconds(10), [&] { return Unavailable("gone"); });
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("gone (tried "));
  EXPECT_LT(now_, end);
}

TEST_F(RetryTest, OtherErrorsAreFinal) {
  for (const absl::Status& error :
       {InvalidArgument("x"), AlreadyExists("x"), DeadlineExceeded("x"),
        FailedPrecondition("x"), Internal("x")}) {
    attempts_ = 0;
    EXPECT_EQ(Run(absl::Seconds(10), [&] { return error; }), error);
    EXPECT_EQ(attempts_, 1);
  }
}

TEST_F(RetryTest, AnAnswerAtTheEndOfTheTimeIsTheAnswer) {
  const absl::Status status = Run(absl::Seconds(10), [&] {
    now_ += absl::Milliseconds(9800);
    return Unavailable("no worker was ready within 9.8 s");
  });
  EXPECT_EQ(attempts_, 1);
  EXPECT_EQ(Message(status), "no worker was ready within 9.8 s");
}

}  // namespace
}  // namespace leat::client
