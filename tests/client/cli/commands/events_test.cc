// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/events.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

size_t LineCount(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Events, AreALineEachWithTheCoordinatorsTime) {
  Shell shell;
  shell.service.watched = {{{EventsJson(1, 2), EventsJson(3, 1)}, {}}};
  ASSERT_EQ(shell.Run({"events"}), 0) << shell.err;
  EXPECT_EQ(LineCount(shell.out), 3u);
  EXPECT_THAT(shell.out,
              HasSubstr("11-21 01:59:03  worker.lost  worker node3 sends"));
  EXPECT_THAT(shell.err, IsEmpty());
  EXPECT_THAT(shell.service.calls,
              ElementsAre("events after 0 of 0 about \"\""));
}

TEST(Events, AreAskedForByKindNameAndTime) {
  Shell shell;
  ASSERT_EQ(shell.Run({"events", "w/node1", "--since", "5m"}), 0);
  ASSERT_EQ(shell.Run({"events", "jobs"}), 0);
  ASSERT_EQ(shell.Run({"events", "job/try2"}), 0) << shell.err;
  EXPECT_THAT(shell.service.calls,
              ElementsAre("events after 0 of 0 about \"worker/node1\" since 5m",
                          "events after 0 of 0 about \"job\"",
                          "events after 0 of 0 about \"job/try2\""));
  EXPECT_THAT(shell.err, HasSubstr("no such event is remembered"));
  EXPECT_EQ(shell.Run({"events", "wrker"}), 2);
  EXPECT_THAT(shell.err, HasSubstr("did you mean worker?"));
  EXPECT_EQ(shell.Run({"events", "shards"}), 2);
  EXPECT_EQ(shell.Run({"events", "pools"}), 2);
  EXPECT_EQ(shell.Run({"events", "--since", "soon"}), 2);
  EXPECT_THAT(shell.err, HasSubstr("--since \"soon\""));
}

TEST(Events, HaveEveryForm) {
  const auto run = [](const std::string& format) {
    Shell shell;
    shell.service.watched = {{{EventsJson(1, 2)}, {}}};
    EXPECT_EQ(shell.Run({"events", "-o", format}), 0) << shell.err;
    return shell.out;
  };
  const std::string jsonl = run("jsonl");
  EXPECT_EQ(LineCount(jsonl), 2u);
  EXPECT_EQ(Json::parse(jsonl.substr(0, jsonl.find('\n')))["sequence"], 1);
  EXPECT_EQ(Json::parse(run("json"))["events"].size(), 2u);
  const std::string csv = run("csv");
  EXPECT_THAT(csv, testing::StartsWith(
                       "SEQUENCE,AT,SEVERITY,TYPE,ABOUT,MESSAGE\n1,2026-"));
  EXPECT_EQ(LineCount(csv), 3u);
  EXPECT_EQ(run("name"), "worker.lost\nworker.lost\n");
  EXPECT_THAT(run("wide"), HasSubstr("worker/node2"));
  EXPECT_THAT(run("yaml"), HasSubstr("type: worker.lost"));
}

TEST(Events, FitATerminalOfFortyColumns) {
  Shell shell;
  shell.terminal = true;
  shell.width = 40;
  shell.variables = {{"NO_COLOR", "1"}};
  shell.service.watched = {{{EventsJson(1, 1)}, {}}};
  ASSERT_EQ(shell.Run({"events"}), 0);
  EXPECT_THAT(shell.out, Not(HasSubstr("\x1b")));
  std::istringstream lines(shell.out);
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 40u) << line;
    all += line + " ";
  }
  EXPECT_THAT(all, HasSubstr("others")) << "nothing is cut off";
}

TEST(EventsWatched, GoOnBehindTheLastNumberWhenTheyWereCutOff) {
  Shell shell;
  shell.service.watched = {
      {{EventsJson(1, 2), EventsJson(3, 1)}, Unavailable("gone")},
      {{}, Unavailable("still gone")},
      {{EventsJson(4, 0, 7), EventsJson(4, 1)}, absl::OkStatus()},  // a minute
      {{EventsJson(5, 2)}, absl::OkStatus()}};
  ASSERT_EQ(shell.Run({"events", "-w", "--count", "6", "-o", "jsonl"}), 0);
  EXPECT_EQ(LineCount(shell.out), 6u);
  EXPECT_THAT(shell.service.calls,
              ElementsAre("events after 0 of 0 about \"\" follow",
                          "events after 3 of 7 about \"\" follow",
                          "events after 3 of 7 about \"\" follow",
                          "events after 4 of 7 about \"\" follow"));
  EXPECT_EQ(shell.pauses, 2);
  EXPECT_THAT(shell.err, HasSubstr("gone"));
  EXPECT_THAT(shell.err, Not(HasSubstr("still gone"))) << "said once";
}

TEST(EventsWatched, SayWhatTheyMissedAndThatTheCoordinatorStartedAgain) {
  Shell shell;
  shell.service.watched = {{{EventsJson(1, 1)}, Unavailable("gone")},
                           {{EventsJson(90, 1, 7, 88)}, Unavailable("gone")},
                           {{EventsJson(1, 1, 8)}, absl::OkStatus()}};
  ASSERT_EQ(shell.Run({"events", "-w", "--count", "3", "-o", "csv"}), 0);
  EXPECT_THAT(shell.err, HasSubstr("88 events came meanwhile"));
  EXPECT_THAT(shell.err, HasSubstr("the coordinator has started again"));
  EXPECT_EQ(LineCount(shell.out), 4u) << "the titles stand once: " << shell.out;
}

TEST(EventsWatched, EndWithTheFirstErrorAndWithOneThatDoesNotPass) {
  Shell first;
  first.service.watched = {{{}, Unavailable("nobody there")}};
  EXPECT_EQ(first.Run({"events", "-w"}), 4);
  EXPECT_EQ(first.pauses, 0);
  Shell revoked;
  revoked.service.watched = {{{EventsJson(1, 1)}, Unauthenticated("revoked")}};
  EXPECT_EQ(revoked.Run({"events", "-w"}), 5);
  Shell odd;
  odd.service.watched = {{{"no json"}, absl::OkStatus()}};
  EXPECT_EQ(odd.Run({"events", "-w"}), 1);
}

TEST(Health, ShowsFindingsAndLeavesMutedOnesOutOfTheVerdict) {
  Shell shell;
  shell.service.findings =
      R"([{"code": "NO_WORKERS", "severity": "error", "summary": "none",
           "remedy": "start one", "muted": true,
           "muted_until": "2026-11-21T03:00:00Z"},
          {"code": "BAD_SAMPLES", "severity": "warn", "summary": "some",
           "remedy": "mend"}])";
  EXPECT_EQ(shell.Run({"health"}), 0);
  EXPECT_THAT(shell.out, HasSubstr("1 warning, 1 muted"));
  EXPECT_THAT(shell.out, HasSubstr("ERROR NO_WORKERS (muted for 60m): none"));
  EXPECT_THAT(shell.out, Not(HasSubstr("start one")));
  EXPECT_THAT(shell.out, HasSubstr("what to do: mend"));
  EXPECT_EQ(shell.Run({"status"}), 0);
  EXPECT_EQ(shell.Run({"doctor", "-o", "json"}),
            shell.Run({"doctor", "--local"}));
  shell.service.findings =
      R"([{"code": "NO_WORKERS", "severity": "error", "muted": false}])";
  EXPECT_EQ(shell.Run({"health"}), 6);
  EXPECT_EQ(shell.Run({"health", "-o", "name"}), 6);
  EXPECT_EQ(shell.out, "NO_WORKERS\n");
}

TEST(Health, MutesForATime) {
  Shell shell;
  ASSERT_EQ(shell.Run({"health", "mute", "WORKER_LOST", "--for", "7d"}), 0);
  EXPECT_THAT(shell.err, HasSubstr("WORKER_LOST is muted for 7d0h"));
  ASSERT_EQ(shell.Run({"health", "mute", "WORKER_LOST"}), 0);
  ASSERT_EQ(shell.Run({"health", "unmute", "WORKER_LOST"}), 0);
  EXPECT_THAT(shell.service.calls,
              ElementsAre("mute WORKER_LOST 168h", "mute WORKER_LOST 0",
                          "unmute WORKER_LOST"));
  EXPECT_EQ(shell.Run({"health", "mute"}), 2);
  EXPECT_EQ(shell.Run({"health", "mute", "A", "--for", "long"}), 2);
  EXPECT_THAT(shell.err, HasSubstr("--for \"long\""));
  EXPECT_EQ(shell.Run({"health", "mute", "A", "--for", ""}), 2);
  EXPECT_THAT(shell.err, HasSubstr("--for \"\": want"));
  EXPECT_EQ(shell.Run({"health", "show", "A"}), 2);
  shell.service.failing = {PermissionDenied("operators only")};
  EXPECT_EQ(shell.Run({"health", "mute", "A"}), 5);
}

}  // namespace
}  // namespace leat::cli
