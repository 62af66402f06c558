// SPDX-License-Identifier: Apache-2.0
#include "client/cli/base/spawn.h"

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::cli {
namespace {

using ::testing::HasSubstr;

TEST(Spawn, GivesBothOutputsAndTheExitCode) {
  const absl::StatusOr<Ended> ended = Spawn(
      {"sh", "-c", "echo out; echo err >&2; cat; exit 3"}, absl::Seconds(20));
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->exit_code, 3);
  EXPECT_EQ(ended->out, "out\n");
  EXPECT_EQ(ended->err, "err\n");
}

TEST(Spawn, AProgramThatIsNotThereIsNamed) {
  const absl::Status status =
      Spawn({"leat-no-such-program"}, absl::Seconds(20)).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("leat-no-such-program"));
}

TEST(Spawn, WhatTakesTooLongIsEnded) {
  const absl::Time begin = absl::Now();
  const absl::Status status =
      Spawn({"sleep", "60"}, absl::Milliseconds(50)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30));
}

TEST(Spawn, WhatPrintsWithoutEndIsEnded) {
  EXPECT_TRUE(
      absl::IsResourceExhausted(Spawn({"yes"}, absl::Seconds(60)).status()));
}

TEST(Spawn, LargeOutputsOfBothComeWhole) {
  const absl::StatusOr<Ended> ended = Spawn(
      {"sh", "-c", "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2"},
      absl::Seconds(20));
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->out.size(), 300'000u);
  EXPECT_EQ(ended->err.size(), 300'000u);
}

TEST(Spawn, ASignalIsAnExitCode) {
  const absl::StatusOr<Ended> ended =
      Spawn({"sh", "-c", "kill -9 $$"}, absl::Seconds(20));
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->exit_code, 128 + 9);
}

}  // namespace
}  // namespace leat::cli
