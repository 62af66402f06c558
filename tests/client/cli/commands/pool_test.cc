// SPDX-License-Identifier: Apache-2.0
#include "client/cli/base/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PoolCommand, SetsBounds) {
  Shell shell;
  EXPECT_EQ(shell.Run({"pool", "set", "cpu", "--min", "1", "--max", "8"}),
            kGood)
      << shell.err;
  EXPECT_THAT(shell.service.calls, ElementsAre("pool-set cpu 1 8"));
  EXPECT_THAT(shell.err, HasSubstr("\"cpu\" may have 1 to 8 workers"));
  EXPECT_EQ(shell.Run({"pool", "set", "cpu", "--max", "0"}), kGood);
  EXPECT_EQ(shell.service.calls.back(), "pool-set cpu 0 0");
  EXPECT_THAT(shell.err, HasSubstr("no bounds"));
}

TEST(PoolCommand, WhatIsMissingOrWrongIsNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table = {
      {{"pool"}, "ACTION"},
      {{"pool", "drop", "cpu"}, "ACTION"},
      {{"pool", "run", "cpu"}, "--kubernetes"},
      {{"pool", "set"}, "NAME"},
      {{"pool", "set", "cpu"}, "--max"},
      {{"pool", "set", "cpu", "--max", "-1"}, "--max"},
      {{"pool", "set", "cpu", "--max", "many"}, "--max"},
      {{"pool", "set", "a b", "--max", "2"}, "a b"},
      {{"pool", "watch", "a b"}, "a b"},
      {{"pool", "watch", "cpu", "--max", "2"}, "--max are of set"},
      {{"pool", "set", "cpu", "--min", "3", "--max", "2"}, "min 3 and max 2"},
  };
  for (const auto& [command, part] : table) {
    Shell shell;
    EXPECT_EQ(shell.Run(command), kWrongUse) << part;
    EXPECT_THAT(shell.err, HasSubstr(part));
    EXPECT_THAT(shell.service.calls, IsEmpty());
  }
}

TEST(PoolCommand, WatchPrintsEachChangeAndWaitsForACoordinatorThatIsAway) {
  Shell shell;
  shell.service.pools_seen = {R"({"name": "cpu", "max": 8, "desired": 2})",
                              R"({"name": "cpu", "max": 8, "desired": 5})"};
  shell.service.failing = {absl::OkStatus(), absl::UnavailableError("gone"),
                           absl::PermissionDeniedError("no viewer")};
  EXPECT_NE(shell.Run({"pool", "watch", "cpu", "-o", "jsonl"}), kGood);
  EXPECT_EQ(shell.out,
            "{\"name\":\"cpu\",\"max\":8,\"desired\":2}\n"
            "{\"name\":\"cpu\",\"max\":8,\"desired\":5}\n");
  EXPECT_THAT(shell.err, HasSubstr("gone"));
  EXPECT_THAT(shell.err, HasSubstr("no viewer"));
  EXPECT_EQ(shell.pauses, 1);
  EXPECT_THAT(
      shell.service.calls,
      ElementsAre("pool-watch cpu", "pool-watch cpu", "pool-watch cpu"));
}

TEST(PoolCommand, WatchEndsWhenNothingCanBePrinted) {
  Shell shell;
  shell.full = true;
  shell.service.pools_seen = {R"({"name": "cpu", "max": 8, "desired": 2})",
                              R"({"name": "cpu", "max": 8, "desired": 5})"};
  shell.service.failing = {absl::OkStatus(),
                           absl::PermissionDeniedError("no viewer")};
  EXPECT_EQ(shell.Run({"pool", "watch", "cpu", "-o", "jsonl"}), kFailed);
  EXPECT_THAT(shell.err, HasSubstr("standard output takes no more"));
}

TEST(PoolCommand, PoolsAreListedWithTheirReasons) {
  Shell shell;
  EXPECT_EQ(shell.Run({"get", "pools", "-o", "wide"}), kGood) << shell.err;
  for (const char* part : {"cpu", "job train waits", "cpu.12_3", "default"})
    EXPECT_THAT(shell.out, HasSubstr(part));
  EXPECT_EQ(shell.Run({"get", "p", "cp", "-o", "name"}), kGood);
  EXPECT_EQ(shell.out, "cpu\n");
  EXPECT_EQ(shell.Run({"get", "workers", "-o", "wide"}), kGood) << shell.err;
  EXPECT_THAT(shell.out, AllOf(HasSubstr("POOL"), HasSubstr("photos")));
  shell.service.answers["pools"] = R"({"pools": []})";
  EXPECT_EQ(shell.Run({"get", "pools"}), kGood);
  EXPECT_THAT(shell.err, HasSubstr("leat pool set"));
  EXPECT_EQ(shell.Run({"describe", "pool", "cpu"}), kWrongUse);
}

}  // namespace
}  // namespace leat::cli
