// SPDX-License-Identifier: Apache-2.0
//
// Every command's exit codes, as scripts rely on them.
#include "client/cli/base/exit_code.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "client/cli/base/text.h"
#include "client/cli/options/command_line.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kError[] =
    R"([{"code": "NO_WORKERS", "severity": "error", "summary": "none",
         "remedy": "start one"}])";

TEST(ExitCodes, EveryCommandSucceedsWithZeroAndQuietStderr) {
  const std::vector<std::vector<std::string>> commands = {
      {"status"},
      {"get", "workers"},
      {"get", "worker", "node1"},
      {"get", "w"},
      {"get", "jobs"},
      {"get", "j", "resn"},
      {"get", "job", "status"},  // a job with a command's name
      {"get", "datasets"},
      {"get", "ds", "abcd"},
      {"get", "shards", "train"},
      {"get", "sh", "tr"},
      {"get", "consumers"},
      {"get", "c"},
      {"get", "pools"},
      {"get", "p", "cpu"},
      {"describe", "worker", "node1"},
      {"describe", "job", "resnet50"},
      {"describe", "job/resnet50"},
      {"get", "worker/node1"},
      {"describe", "dataset", "train"},
      {"version"},
      {"--version"},
      {"--help"},
      {"get", "--help"},
      {"completion", "bash"},
      {"completion", "zsh"},
      {"completion", "fish"},
      {"health"},
      {"events", "--help"},
  };
  for (const std::vector<std::string>& command : commands) {
    Shell shell;
    EXPECT_EQ(shell.Run(command), kGood) << shell.err;
    EXPECT_THAT(shell.out, Not(IsEmpty())) << command[0];
    EXPECT_THAT(shell.err, IsEmpty());
  }
}

TEST(ExitCodes, WrongUseIsTwoAndSaysWhatWasMeant) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table = {
      {{}, "Examples"},
      {{"stauts"}, "did you mean status"},
      {{"foo"}, "unknown command \"foo\"\nleat: \"leat --help\""},
      {{"get"}, "\"leat get --help\" says what it takes"},
      {{"get"}, "KIND is required"},
      {{"get", "wrokers"}, "did you mean workers"},
      {{"get", "workers", "--ouput", "json"}, "did you mean --output"},
      {{"get", "workers", "-o", "xml"}, "xml"},
      {{"get", "shards", "train", "val"}, "shards of 2 datasets: want one"},
      {{"get", "jobs", ""}, "name 1 of 1 is empty"},
      {{"describe", "job", "resnet50", ""}, "name 2 of 2 is empty"},
      {{"delete", "job", "", "--yes"}, "name 1 of 1 is empty"},
      {{"drain", ""}, "name 1 of 1 is empty"},
      {{"access", "list", "x"}, "list: unexpected \"x\""},
      {{"bottleneck", "a", "b"}, "unexpected \"b\""},
      {{"wait", "job/", "--for=idle"}, "wait for \"job/\": want worker/NAME"},
      {{"get", "workers", "node"}, "node1, node2"},
      {{"get", "shards"}, "want one of: train"},
      {{"delete", "job", "--yes"}, "delete: job NAME: NAME is missing"},
      {{"describe", "job/"}, "name 1 of 1 is empty"},
      {{"delete", "dataset/", "--yes"}, "name 1 of 1 is empty"},
      {{"describe", "consumer", "x"}, "workers, jobs or datasets"},
      {{"delete", "worker", "x", "--yes"}, "job or a dataset"},
      {{"delete", "job", "resnet50"}, "--yes"},
      {{"log-level", "loud"}, "loud"},
      {{"status", "--timeout", "soon"}, "--timeout \"soon\""},
      {{"status", "--timeout", "0"}, "--timeout \"0\""},
      {{"status", "--watch", "--interval", "-1s"}, "--interval \"-1s\""},
      {{"status", "--color", "pink"}, "pink"},
      {{"sheet", "resnet50", "--rows", "0"}, "0"},
      {{"sheet", "resnet50", "--step", "-1"}, "-1"},
      {{"completion", "tcsh"}, "\"tcsh\": want one of bash, zsh, fish"},
      {{"pool", "sett", "x"}, "want one of set, watch, run; did you mean set?"},
  };
  for (const auto& [command, message] : table) {
    Shell shell;
    EXPECT_EQ(shell.Run(command), kWrongUse) << message;
    EXPECT_THAT(shell.err, HasSubstr(message));
    EXPECT_THAT(shell.out, IsEmpty());
  }
}

TEST(ExitCodes, WhatIsNotThereIsThreeWithNearNames) {
  Shell shell;
  EXPECT_EQ(shell.Run({"get", "jobs", "resnet5O"}), kNotFound);
  EXPECT_THAT(shell.err, HasSubstr("did you mean resnet50"));
  EXPECT_EQ(shell.Run({"describe", "worker", "ndoe1"}), kNotFound);
  EXPECT_THAT(shell.err, HasSubstr("node1"));
  EXPECT_EQ(shell.Run({"get", "shards", "nothing"}), kNotFound);
  shell.service.failing = {absl::OkStatus(), NotFound("no such worker")};
  EXPECT_EQ(shell.Run({"drain", "node3"}), kNotFound);
  EXPECT_THAT(shell.err, HasSubstr("did you mean node1, node2"));
  EXPECT_EQ(shell.Run({"sheet", "resnet51"}), kNotFound);
  EXPECT_THAT(shell.err, HasSubstr("did you mean resnet50"));
  EXPECT_EQ(shell.Run({"inspect", "/no/such/file"}), kNotFound);
}

TEST(ExitCodes, TheHintAfterATimeThatIsOverNamesTheRightFlag) {
  Shell shell;
  shell.service.failing = {DeadlineExceeded("10s")};
  EXPECT_EQ(shell.Run({"get", "jobs"}), kCannotConnect);
  EXPECT_THAT(shell.err, HasSubstr("--timeout TIME gives it longer"));
  shell.clock_runs = true;
  EXPECT_EQ(shell.Run({"wait", "job/x", "--for=idle", "--within", "9s"}),
            kCannotConnect);
  EXPECT_THAT(shell.err, HasSubstr("job \"x\" is not idle within 9s"));
  EXPECT_EQ(shell.connected.timeout, absl::Seconds(9)) << "not for 10 s";
  EXPECT_THAT(shell.err, HasSubstr("--within TIME gives it longer"));
  EXPECT_THAT(shell.err, Not(HasSubstr("--timeout")));
}

TEST(ExitCodes, AVariableThatIsEmptyIsWrongUse) {
  for (const char* name :
       {"LEAT_COORDINATOR", "LEAT_CONTEXT", "LEAT_ACCESS_TOKEN", "LEAT_TLS_CA",
        "LEAT_TLS_CERT", "LEAT_TLS_KEY"}) {
    Shell shell;
    shell.variables = {{name, ""}};
    EXPECT_EQ(shell.Run({"get", "workers"}), kWrongUse);
    EXPECT_THAT(shell.err, HasSubstr(fmt::format("{} is set and empty", name)));
    EXPECT_EQ(shell.connected.address, "") << "nobody is asked";
    EXPECT_EQ(shell.Run({"version"}), kGood) << "it asks no service";
  }
  Shell shell;
  shell.variables = {{"LEAT_COORDINATOR", ""}};
  EXPECT_EQ(shell.Run({"get", "workers", "--coordinator", "a:1"}), kGood)
      << shell.err;
}

TEST(ExitCodes, ErrorsOfTheServiceKeepTheirKind) {
  const std::vector<std::pair<absl::Status, int>> table = {
      {Unavailable("connection refused"), kCannotConnect},
      {DeadlineExceeded("10s"), kCannotConnect},
      {Unauthenticated("no token"), kNotAllowed},
      {PermissionDenied("admins only"), kNotAllowed},
      {InvalidArgument("level"), kWrongUse},
      {Internal("oops"), kFailed},
      {FailedPrecondition("jobs use it"), kFailed},
      {ResourceExhausted("full"), kFailed},
      {Unimplemented("later"), kFailed},
      {Cancelled("stopped"), kFailed},
  };
  for (const auto& [status, exit_code] : table) {
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{
             {"status"},
             {"get", "jobs"},
             {"describe", "job", "resnet50"},
             {"delete", "dataset", "train", "--yes"},
             {"drain", "node1"},
             {"undrain", "node1"},
             {"log-level", "debug"}}) {
      Shell calls;
      calls.service.failing = {status};
      EXPECT_EQ(calls.Run(command), exit_code) << command[0];
      EXPECT_THAT(calls.err, HasSubstr(std::string(Message(status))));
      EXPECT_THAT(calls.err, Not(HasSubstr("no service is named")));
      Shell connects;
      connects.service.connect = status;
      EXPECT_EQ(connects.Run(command), exit_code) << command[0];
      if (absl::IsUnavailable(status)) {
        EXPECT_THAT(connects.err, HasSubstr("no service is named"));
      }
    }
  }
}

TEST(ExitCodes, AnErrorFindingIsSixAndAWarningIsNot) {
  Shell shell;
  shell.service.findings = kError;
  EXPECT_EQ(shell.Run({"status"}), kUnhealthy);
  EXPECT_THAT(shell.out, HasSubstr("ERROR NO_WORKERS: none"));
  EXPECT_THAT(shell.out, HasSubstr("what to do: start one"));
  EXPECT_EQ(shell.Run({"status", "-o", "json"}), kUnhealthy);
  shell.service.findings = R"([{"code": "WORKER_LOST", "severity": "warn"}])";
  EXPECT_EQ(shell.Run({"status", "-o", "name"}), kGood);
  EXPECT_EQ(shell.out, "WORKER_LOST\n");
}

TEST(ExitCodes, AnAnswerThatIsNoJsonIsAFailure) {
  Shell shell;
  shell.service.answers["jobs"] = "<html>";
  EXPECT_EQ(shell.Run({"get", "jobs"}), kFailed);
  shell.service.answers["jobs"] = R"({"jobs": [7, null, {"job": []}]})";
  EXPECT_EQ(shell.Run({"get", "jobs"}), kGood);
}

TEST(Actions, DoWhatTheySayAndLeaveStdoutEmpty) {
  Shell shell;
  EXPECT_EQ(shell.Run({"drain", "node1"}), kGood);
  EXPECT_EQ(shell.Run({"undrain", "node1"}), kGood);
  EXPECT_EQ(shell.Run({"log-level", "debug", "--worker", "node1"}), kGood);
  EXPECT_EQ(shell.Run({"delete", "job", "resnet50", "--yes"}), kGood);
  EXPECT_THAT(shell.service.calls,
              ElementsAre("workers", "drain node1", "undrain node1",
                          "log-level debug node1", "delete-job resnet50"));
  EXPECT_THAT(shell.out, IsEmpty());
  EXPECT_THAT(shell.err, HasSubstr("deleted"));
}

TEST(Actions, DeletingAsksOnATerminal) {
  Shell shell;
  shell.terminal = true;
  shell.typed = "no\n";
  EXPECT_EQ(shell.Run({"delete", "job", "resnet50"}), kFailed);
  EXPECT_THAT(shell.service.calls, IsEmpty());
  shell.typed = "Yes\n";
  EXPECT_EQ(shell.Run({"delete", "job/resnet50"}), kGood);
  EXPECT_THAT(shell.service.calls, ElementsAre("delete-job resnet50"));
}

TEST(Connecting, FlagsWinOverTheEnvironmentAndItOverTheDefault) {
  Shell shell;
  shell.Run({"status"});
  EXPECT_EQ(shell.connected.address, "127.0.0.1:7411");
  shell.variables = {{"LEAT_COORDINATOR", "a:1"},
                     {"LEAT_ACCESS_TOKEN", "secret"}};
  shell.Run({"status"});
  EXPECT_EQ(shell.connected.address, "a:1");
  EXPECT_EQ(shell.connected.access_token, "secret");
  shell.Run({"status", "--coordinator", "b:2", "--timeout", "500ms"});
  EXPECT_EQ(shell.connected.address, "b:2");
  EXPECT_EQ(shell.connected.timeout, absl::Milliseconds(500));
  shell.Run({"--coordinator", "c:3", "get", "jobs"});
  EXPECT_EQ(shell.connected.address, "c:3");
}

TEST(Connecting, ATokenFileThatCannotBeReadIsAnErrorNeverAFallback) {
  Shell shell;
  shell.variables = {{"LEAT_ACCESS_TOKEN", "secret"}};
  EXPECT_EQ(shell.Run({"status", "--access-token-file", "/no/such"}), kFailed);
  EXPECT_THAT(shell.err, HasSubstr("/no/such"));
  EXPECT_THAT(shell.err, ::testing::Not(HasSubstr("secret")));
}

TEST(Connecting, AnAccessTokenIsTheOneLineOfItsFile) {
  const std::string file = testing::TempDir() + "/token_" +
                           std::to_string(getpid());  // only of this test
  const auto run = [&](const std::string& text, bool by_variable) {
    std::ofstream(file) << text;
    Shell shell;
    shell.variables = {{"LEAT_ACCESS_TOKEN_FILE", by_variable ? file : "/no"}};
    const int code = by_variable
                         ? shell.Run({"status"})
                         : shell.Run({"status", "--access-token-file", file});
    return std::pair(
        code, code == kWrongUse ? shell.err : shell.connected.access_token);
  };
  for (const bool by_variable : {false, true}) {
    for (const char* text : {"secret", "secret\n", "secret\r\n", " secret\n\n"})
      EXPECT_THAT(run(text, by_variable), ::testing::Pair(kGood, "secret"))
          << text;
    for (const char* text : {"\n", "a\nsecret\n", "\xef\xbb\xbfsecret\n"})
      EXPECT_THAT(
          run(text, by_variable),
          ::testing::Pair(
              kWrongUse, ::testing::AllOf(HasSubstr(file),
                                          ::testing::Not(HasSubstr("secret")))))
          << text;
  }
  std::remove(file.c_str());
}

TEST(Connecting, ATokenOfTheEnvironmentMayEndWithALineEnd) {
  Shell shell;
  shell.variables = {{"LEAT_ACCESS_TOKEN", "secret\n"},
                     {"LEAT_ACCESS_TOKEN_FILE", "/no/such"}};
  EXPECT_EQ(shell.Run({"status"}), kGood);
  EXPECT_EQ(shell.connected.access_token, "secret");
  shell.variables = {{"LEAT_ACCESS_TOKEN", "two words"}};
  EXPECT_EQ(shell.Run({"status"}), kWrongUse);
  EXPECT_THAT(shell.err, HasSubstr("LEAT_ACCESS_TOKEN: 9 characters"));
}

TEST(Watch, PrintsAgainAndSurvivesARestartOfTheCoordinator) {
  Shell shell;
  shell.service.failing = {absl::OkStatus(), Unavailable("restarting"),
                           absl::OkStatus()};
  EXPECT_EQ(shell.Run({"get", "jobs", "--watch", "--count", "3"}), kGood);
  EXPECT_EQ(shell.pauses, 2);
  EXPECT_THAT(shell.err, HasSubstr("restarting"));
  EXPECT_NE(shell.out.find("resnet50"), shell.out.rfind("resnet50"));
  EXPECT_EQ(shell.out.find('\x1b'), std::string::npos);
  shell.service.failing = {Unavailable("never up")};
  EXPECT_EQ(shell.Run({"get", "jobs", "--watch"}), kCannotConnect);
}

TEST(ExitCodes, OutputThatCannotBeWrittenIsAnError) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"version"},
        {"--help"},
        {"completion", "bash"},
        {"get", "jobs", "-o", "json"},
        {"events"}}) {
    Shell shell;
    shell.full = true;
    EXPECT_EQ(shell.Run(command), kFailed) << command.front();
    EXPECT_THAT(shell.err, HasSubstr("standard output takes no more"));
  }
}

TEST(ExitCodes, AnUnknownOptionIsSaidBeforeAWordThatIsMissing) {
  Shell shell;
  EXPECT_EQ(shell.Run({"drain", "--al"}), kWrongUse);
  EXPECT_THAT(shell.err, HasSubstr("drain: unknown option --al"));
  EXPECT_EQ(shell.Run({"sheet", "--", "job", "--step", "1"}), kWrongUse);
  EXPECT_THAT(shell.err, HasSubstr("--step stands behind \"--\""));
}

TEST(ExitCodes, AFlagThatIsEmptyIsNotTheDefault) {
  for (const char* flag : {"--coordinator", "--access-token-file", "--tls-ca",
                           "--tls-cert", "--tls-key", "--context"}) {
    Shell shell;
    EXPECT_EQ(shell.Run({"status", flag, ""}), kWrongUse) << flag;
    EXPECT_THAT(shell.err, HasSubstr(fmt::format("{} is empty", flag)));
    EXPECT_THAT(shell.service.calls, IsEmpty());
  }
}

TEST(ExitCodes, AFileThatCannotBeReadOrWrittenIsSaidWithTheReason) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table = {
      {{"status", "--access-token-file", "/nowhere/token"},
       "--access-token-file /nowhere/token: cannot be read: No such file"},
      {{"status", "--access-token-file", "/dev/zero"}, "more than 1048576"},
      {{"status", "--tls-ca", "/dev/null"}, "/dev/null: it is empty"},
      {{"report", "-o", "/dev/full"},
       "/dev/full: cannot be written: No space left on device"},
      {{"report", "-o", "/nowhere/r.html"}, "written: No such file"}};
  for (const auto& [command, message] : table) {
    Shell shell;
    EXPECT_EQ(shell.Run(command), kFailed);
    EXPECT_THAT(shell.err, HasSubstr(message));
  }
}

TEST(Watch, ADumbTerminalGetsNoControlSequences) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"top", "--count", "2"},
        {"status", "--watch", "--count", "2"},
        {"index", "/data"}}) {
    Shell shell;
    shell.terminal = true;
    shell.variables["TERM"] = "dumb";
    shell.spawn = [](const std::vector<std::string>&) {
      return Ended{0, R"({"records": 1})", ""};
    };
    shell.Run(command);
    EXPECT_THAT(shell.out, Not(HasSubstr("\x1b"))) << command.front();
    EXPECT_THAT(shell.err, Not(HasSubstr("\x1b"))) << command.front();
  }
}

// Counts columns, not bytes: every character is one column wide here.
void ExpectNarrow(const std::string& help, const std::string& of) {
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(DisplayWidth(line), 80u) << of << ": " << line;
}

TEST(Help, OfEveryCommandFitsInto80Columns) {
  Shell shell;
  ASSERT_EQ(shell.Run({"--help"}), kGood);
  ExpectNarrow(shell.out, "leat");
  for (const CommandNode& command : CommandLine().Tree().commands) {
    ASSERT_EQ(shell.Run({command.name, "--help"}), kGood);
    ExpectNarrow(shell.out, command.name);
  }
}

}  // namespace
}  // namespace leat::cli
