// SPDX-License-Identifier: Apache-2.0
//
// Commands that take several names: each is executed, failures are named, and
// the exit code shows that there was one.
#include "client/cli/base/exit_code.h"
#include "client/cli/base/fields.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Names, GetListsThoseThatAreThereAndNamesTheOthers) {
  Shell shell;
  ASSERT_EQ(shell.Run({"get", "jobs", "status", "resn", "-o", "name"}), kGood)
      << shell.err;
  EXPECT_EQ(shell.out, "status\nresnet50\n") << "in the order of the names";
  EXPECT_EQ(shell.Run({"get", "jobs", "resnet50", "resn", "-o", "name"}),
            kGood);
  EXPECT_EQ(shell.out, "resnet50\n") << "each once";
  EXPECT_EQ(shell.Run({"get", "jobs", "vit", "resnet50", "resnet5O"}),
            kNotFound);
  EXPECT_THAT(shell.out,
              AllOf(HasSubstr("resnet50"), Not(HasSubstr("status"))));
  EXPECT_THAT(shell.err,
              AllOf(HasSubstr("leat: get: no job \"vit\""),
                    HasSubstr("leat: get: no job \"resnet5O\"; did you mean "
                              "resnet50?")));
  EXPECT_EQ(shell.Run({"get", "jobs", "vit", "bert", "-o", "json"}), kNotFound);
  EXPECT_THAT(shell.out, IsEmpty());
  EXPECT_THAT(shell.err, AllOf(HasSubstr("\"vit\""), HasSubstr("\"bert\"")));
}

TEST(Names, DescribeWithoutANameDescribesAll) {
  Shell shell;
  ASSERT_EQ(shell.Run({"describe", "jobs"}), kGood) << shell.err;
  EXPECT_THAT(shell.out, AllOf(HasSubstr("job 1 of 2"), HasSubstr("resnet50"),
                               HasSubstr("job 2 of 2"), HasSubstr("Pipeline")));
  ASSERT_EQ(shell.Run({"describe", "workers", "-o", "json"}), kGood);
  EXPECT_EQ(Json::parse(shell.out)["workers"].size(), 2u);
  ASSERT_EQ(shell.Run({"describe", "worker", "node2", "node1", "-o", "name"}),
            kGood);
  EXPECT_EQ(shell.out, "node2\nnode1\n");
  // A single name gives its object and not a list.
  ASSERT_EQ(shell.Run({"describe", "worker", "node1", "-o", "json"}), kGood);
  EXPECT_EQ(Json::parse(shell.out)["name"], "node1");
  EXPECT_EQ(shell.Run({"describe", "worker", "node1", "node9"}), kNotFound);
  EXPECT_THAT(shell.out, HasSubstr("10.0.0.1:7000"));
  EXPECT_THAT(shell.err, HasSubstr("no worker \"node9\""));
  shell.service.answers["jobs"] = R"({"jobs": []})";
  EXPECT_EQ(shell.Run({"describe", "jobs"}), kGood);
  EXPECT_THAT(shell.err, HasSubstr("no jobs; a training script creates them"));
}

TEST(Describe, AJobSaysWhoCreatedIt) {
  for (const auto& [creator, text] :
       {std::pair("token 0a1b2c3d (vision)", "token 0a1b2c3d (vision)"),
        std::pair("anonymous", "a caller without a name")}) {
    Shell shell;
    shell.service.answers["jobs"] = fmt::format(
        R"({{"jobs": [{{"job": {{"spec": {{"name": "a"}}}}, "created_by": "{}"}}]}})",
        creator);
    ASSERT_EQ(shell.Run({"describe", "job", "a", "-o", "csv"}), kGood);
    EXPECT_THAT(shell.out, HasSubstr(fmt::format("Created by,{}\n", text)));
  }
}

TEST(Names, DescribeOfVeryManyIsBoundedAsTextAndWholeAsJson) {
  Json jobs = {{"jobs", Json::array()}};
  for (int i = 0; i < 101; ++i)
    jobs["jobs"].push_back(
        {{"job", {{"spec", {{"name", fmt::format("job-{}", i)}}}}}});
  Shell shell;
  shell.service.answers["jobs"] = jobs.dump();
  ASSERT_EQ(shell.Run({"describe", "jobs"}), kGood) << shell.err;
  EXPECT_THAT(shell.out, AllOf(HasSubstr("job-99"), Not(HasSubstr("job-100"))));
  EXPECT_THAT(shell.err, HasSubstr("100 of 101 jobs are described"));
  ASSERT_EQ(shell.Run({"describe", "jobs", "-o", "json"}), kGood);
  EXPECT_EQ(Json::parse(shell.out)["jobs"].size(), 101u);
}

TEST(Names, DeleteGoesOnAfterANameThatFails) {
  Shell shell;
  shell.service.failing = {absl::OkStatus(), NotFound("no such job")};
  EXPECT_EQ(shell.Run({"delete", "job", "a", "resnet5O", "b", "a", "--yes"}),
            kNotFound);
  EXPECT_THAT(shell.service.calls,
              ElementsAre("delete-job a", "delete-job resnet5O", "jobs",
                          "delete-job b"));
  EXPECT_THAT(shell.err,
              AllOf(HasSubstr("job \"a\" deleted"),
                    HasSubstr("delete: no job \"resnet5O\"; did you mean"),
                    HasSubstr("job \"b\" deleted")));
  shell.terminal = true;
  shell.typed = "n\n";
  EXPECT_EQ(shell.Run({"delete", "dataset", "a", "b"}), kFailed);
  EXPECT_THAT(shell.err,
              HasSubstr("Delete 2 datasets (\"a\", \"b\")? The next"));
}

// An error that all names would have ends the command at the first.
TEST(Names, ALostCoordinatorIsAskedOnce) {
  Shell shell;
  shell.service.failing = {absl::OkStatus(), absl::OkStatus(),
                           Unavailable("connection refused")};
  EXPECT_EQ(shell.Run({"drain", "n1", "n2", "n3", "n4"}), kCannotConnect);
  EXPECT_THAT(shell.service.calls,
              ElementsAre("workers", "drain n1", "drain n2"));
  EXPECT_THAT(shell.err, AllOf(HasSubstr("worker \"n1\" drains"),
                               HasSubstr("drain: n2: connection refused; not "
                                         "tried: n3, n4")));
}

// Only node1 of the fake's workers is ready.
TEST(Names, ThatNoWorkerWillBeLeftIsSaidBeforeTheLastOneDrains) {
  Shell shell;
  EXPECT_EQ(shell.Run({"drain", "node2"}), kGood);
  EXPECT_THAT(shell.err, Not(HasSubstr("no other worker")));
  shell.service.failing = {absl::OkStatus(), Unavailable("gone")};
  EXPECT_EQ(shell.Run({"drain", "node2", "node1"}), kCannotConnect);
  EXPECT_THAT(shell.err, HasSubstr("no other worker is ready: jobs get no"));
}

TEST(Names, OtherCommandsTakeSeveralToo) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table = {
      {{"undrain", "a", "b"}, "undrain"},
      {{"refresh", "dataset", "a", "b"}, "refresh-dataset"},
      {{"access", "revoke", "a", "b"}, "revoke-token"},
      {{"health", "unmute", "a", "b"}, "unmute"}};
  for (const auto& [command, call] : table) {
    Shell shell;
    EXPECT_EQ(shell.Run(command), kGood) << shell.err;
    EXPECT_THAT(shell.service.calls, ElementsAre(call + " a", call + " b"));
    Shell failing;
    failing.service.failing = {FailedPrecondition("busy")};
    EXPECT_EQ(failing.Run(command), kFailed);
    EXPECT_THAT(failing.service.calls, ElementsAre(call + " a", call + " b"));
    EXPECT_THAT(failing.err, HasSubstr(command[0] + ": busy"));
  }
}

TEST(Names, WaitWaitsForEach) {
  Shell shell;
  EXPECT_EQ(shell.Run({"wait", "worker/node1", "dataset/train", "--for=ready"}),
            kGood)
      << shell.err;
  EXPECT_THAT(shell.service.calls, ElementsAre("workers", "datasets"));
  EXPECT_EQ(shell.Run({"wait", "worker/node1", "job/resnet50", "--for=ready"}),
            kWrongUse);
  EXPECT_EQ(shell.Run({"wait", "worker/node1", "node2", "--for=ready"}),
            kWrongUse);
  EXPECT_THAT(shell.err, HasSubstr("wait for \"node2\": want worker/NAME"));
}

TEST(Names, ThatCouldNotTravelAreRefusedBeforeAnythingIsAsked) {
  // On the wire they would be another name: "delete job $'\\xff'" must not
  // delete the job "?".
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"delete", "job", "-y"},
        {"drain"},
        {"describe", "worker"},
        {"access", "revoke"},
        {"health", "mute"},
        {"trace"},
        {"bottleneck"},
        {"refresh", "dataset"},
        {"context", "use"}}) {
    SCOPED_TRACE(command.front());
    for (const std::string& name :
         {std::string("\xff"), std::string(2000, 'x')}) {
      Shell shell;
      std::vector<std::string> words = command;
      words.push_back(name);
      EXPECT_EQ(shell.Run(words), kWrongUse);
      EXPECT_THAT(shell.err, HasSubstr(fmt::format(
                                 "of {} bytes: want at most 1024, in UTF-8\n",
                                 name.size())));
      EXPECT_THAT(shell.service.calls, IsEmpty());
    }
  }
}

}  // namespace
}  // namespace leat::cli
