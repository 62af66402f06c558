// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/top.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const absl::Time kBegin = absl::FromUnixSeconds(1'000'000);

// Returns workers by rate, each of 2 threads that have decoded for that long.
Json Workers(const std::vector<std::pair<double, uint64_t>>& workers) {
  Json list = Json::array();
  for (const auto& [rate, decoding_ns] : workers)
    list.push_back(
        {{"name", fmt::format("w{}", list.size())},
         {"state", "WORKER_STATE_READY"},
         {"stats",
          {{"rows_per_s", rate},
           {"stages", Json::array({{{"stage", "STAGE_DECODE"},
                                    {"places", 2},
                                    {"busy_ns_total", decoding_ns}}})}}}});
  return {{"workers", std::move(list)}};
}

TEST(Top, ShowsSharesOfTheTimeBetweenTwoAnswers) {
  Top top({.kind = "workers"});
  const auto first = top.Next(Workers({{10, 500}}), kBegin);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->sections[0].table.rows[0][4].text, "-");
  const auto second =
      top.Next(Workers({{10, 500 + 2'000'000'000}}), kBegin + absl::Seconds(4));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->sections[0].table.rows[0][4].text, "25.0");
  // It restarted: no counter may decrease.
  const auto third = top.Next(Workers({{10, 0}}), kBegin + absl::Seconds(6));
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(third->sections[0].table.rows[0][4].text, "0.0");
}

TEST(Top, SortsByAColumnAndShowsTheFirstRows) {
  Top by_rate({.kind = "workers", .rows = 2});
  const auto view =
      by_rate.Next(Workers({{10, 0}, {1000, 0}, {200, 0}}), kBegin);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_THAT(view->names, ElementsAre("w1", "w2"));
  EXPECT_EQ(view->sections[0].title, "workers 2 of 3, by rate(rows/s)");
  EXPECT_EQ(Items(view->data, "workers").size(), 3u);
  Top by_name({.kind = "workers", .sort = "NaM"});
  EXPECT_THAT(by_name.Next(Workers({{1, 0}, {2, 0}}), kBegin)->names,
              ElementsAre("w0", "w1"));
  Top by_nothing({.kind = "workers", .sort = "colour"});
  const absl::Status status =
      by_nothing.Next(Workers({{1, 0}}), kBegin).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("name, state, rate"));
}

TEST(Top, SortsAgesByTheirTime) {
  Json jobs = Json::array();
  for (const char* created :
       {"1970-01-12T13:46:00Z", "1970-01-12T13:01:00Z", "1970-01-12T09:45:00Z",
        "1970-01-12T09:00:00Z", "1970-01-02T00:00:00Z"})
    jobs.push_back(
        {{"job", {{"spec", {{"name", fmt::format("j{}", jobs.size())}}}}},
         {"created_at", created}});
  Top top({.kind = "jobs", .sort = "age"});
  // These are 10d13h, 4h46m, 4h1m, 45m and 40s.
  EXPECT_THAT(top.Next({{"jobs", std::move(jobs)}}, kBegin)->names,
              ElementsAre("j4", "j3", "j2", "j1", "j0"));
}

TEST(Top, SortsNamesThatLookLikeNumbersAsTexts) {
  Json workers = Json::array();
  for (const char* name : {"nan", "node", "infra", "a"})
    workers.push_back({{"name", name}});
  Top top({.kind = "workers", .sort = "name"});
  EXPECT_THAT(top.Next({{"workers", std::move(workers)}}, kBegin)->names,
              ElementsAre("a", "infra", "nan", "node"));
}

TEST(Top, TenThousandWorkersAreOneScreen) {
  std::vector<std::pair<double, uint64_t>> many(10'000, {1, 0});
  Top top({.kind = "workers"});
  const auto view = top.Next(Workers(many), kBegin);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->sections[0].table.rows.size(), 32u);
}

TEST(Top, RedrawsOnATerminalAndPrintsTablesElsewhere) {
  Shell shell;
  ASSERT_EQ(shell.Run({"top", "--count", "2"}), 0) << shell.err;
  EXPECT_THAT(shell.out, Not(HasSubstr("\x1b")));
  EXPECT_EQ(shell.pauses, 1);
  EXPECT_THAT(shell.service.calls, ElementsAre("workers", "workers"));
  shell.terminal = true;
  shell.width = 40;
  shell.variables = {{"NO_COLOR", "1"}};
  ASSERT_EQ(shell.Run({"top", "consumers", "--count", "2"}), 0) << shell.err;
  EXPECT_THAT(shell.out, HasSubstr("\x1b[H"));
  EXPECT_THAT(shell.out, Not(HasSubstr("\x1b[1m")));
  EXPECT_THAT(shell.out, HasSubstr("trainer0-77"));
  EXPECT_THAT(shell.out, HasSubstr("WAITS(%)"));
  EXPECT_THAT(shell.out, Not(HasSubstr("OPEN(rows)")));
  EXPECT_EQ(shell.Run({"top", "shards"}), 2);
}

// Lines beyond the window's height would push out its first lines.
TEST(Top, IsNotHigherThanTheTerminal) {
  Shell shell;
  shell.terminal = true;
  shell.width = 80;
  shell.height = 6;
  shell.variables = {{"NO_COLOR", "1"}};
  std::string workers;
  for (int i = 0; i < 20; ++i)
    workers += fmt::format(R"({}{{"name": "w{}"}})", i == 0 ? "" : ",", i);
  shell.service.answers["workers"] = "{\"workers\": [" + workers + "]}";
  ASSERT_EQ(shell.Run({"top", "--count", "1"}), 0) << shell.err;
  EXPECT_EQ(std::count(shell.out.begin(), shell.out.end(), '\n'), 5);
  EXPECT_THAT(shell.out,
              AllOf(HasSubstr("workers 20 of 20"), HasSubstr("w1 "),
                    Not(HasSubstr("w2 ")), HasSubstr("… 18 more lines")));
}

TEST(Top, IsDrawnAgainForATerminalOfAnotherSize) {
  Shell shell;
  shell.terminal = true;
  shell.width = 200;
  shell.on_pause = [&shell] { shell.width = 40; };
  ASSERT_EQ(shell.Run({"top", "--count", "2"}), 0) << shell.err;
  // The last answer is redrawn at once, and a new one is requested when its
  // time comes.
  EXPECT_EQ(shell.pauses, 2);
  EXPECT_THAT(shell.service.calls, ElementsAre("workers", "workers"));
  const std::string after = shell.out.substr(shell.out.rfind("\x1b[2J"));
  EXPECT_THAT(shell.out.substr(0, shell.out.size() - after.size()),
              HasSubstr("WAITS OUT(%)"));
  EXPECT_THAT(after, AllOf(HasSubstr("node1"), Not(HasSubstr("WAITS OUT(%)"))));
}

TEST(Wait, EndsWhenItHolds) {
  Shell shell;
  EXPECT_EQ(shell.Run({"wait", "worker/node1", "--for=ready"}), 0);
  EXPECT_EQ(shell.Run({"wait", "worker/node2", "--for=lost"}), 0);
  EXPECT_EQ(shell.Run({"wait", "job/resnet50", "--for", "running"}), 0);
  EXPECT_EQ(shell.Run({"wait", "job/none", "--for=gone"}), 0);
  EXPECT_EQ(shell.Run({"wait", "dataset/train", "--for=ready"}), 0);
  EXPECT_EQ(shell.pauses, 0);
}

TEST(Wait, SaysOnceWhatItWaitsForIfThatTakesLong) {
  Shell shell;
  shell.clock_runs = true;
  EXPECT_EQ(shell.Run({"wait", "worker/node9", "--for=ready", "--within=30s"}),
            4);
  const std::string said =
      "leat: waits until worker \"node9\" is ready, for 30s at most: it is not "
      "there; did you mean node1, node2?\n";
  EXPECT_THAT(shell.err, HasSubstr(said));
  EXPECT_EQ(shell.err.find(said), shell.err.rfind(said));
  EXPECT_EQ(shell.Run({"wait", "worker/node9", "--for=ready", "--within=3s"}),
            4);
  EXPECT_THAT(shell.err, Not(HasSubstr("waits until")));
}

TEST(Wait, WhatItCannotWaitForIsWrongUse) {
  Shell shell;
  EXPECT_EQ(shell.Run({"wait", "node1", "--for=ready"}), 2);
  EXPECT_THAT(shell.err, HasSubstr("want worker/NAME"));
  EXPECT_EQ(shell.Run({"wait", "job/resnet50", "--for=lost"}), 2);
  EXPECT_THAT(shell.err, HasSubstr("want one of gone, running, idle"));
}

TEST(Wait, EndsWhereAJobThatWasThereIsDeleted) {
  Shell shell;
  shell.clock_runs = true;
  const std::string jobs = shell.service.answers["jobs"];
  shell.on_pause = [&] {
    // Absent for a moment, as while a script creates it again; then for good.
    shell.service.answers["jobs"] =
        shell.pauses == 1 || shell.pauses > 3 ? R"({"jobs": []})" : jobs;
  };
  EXPECT_EQ(shell.Run({"wait", "job/resnet50", "--for=idle"}), 3);
  EXPECT_THAT(shell.err, HasSubstr("job \"resnet50\" was deleted while"));
  EXPECT_LT(shell.paused, absl::Seconds(30));
  EXPECT_EQ(shell.Run({"wait", "job/never", "--for=idle", "--within", "30s"}),
            4);
  EXPECT_THAT(shell.err, HasSubstr("not idle within 30s: it is not there\n"));
}

}  // namespace
}  // namespace leat::cli
