// SPDX-License-Identifier: Apache-2.0
#include "client/cli/session/contexts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ContextsTest : public ::testing::Test {
 protected:
  ContextsTest() {
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("leat-contexts-{}", getpid());
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "config.yaml";
    shell_.variables = {{"LEAT_CONFIG", path_.string()}};
  }
  ~ContextsTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path_) << text;
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
  }
  std::string Read() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return std::move(text).str();
  }
  // Writes a file with a text, and returns its path.
  std::string File(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  std::filesystem::path folder_, path_;
  Shell shell_;
};

TEST_F(ContextsTest, AreSetUsedListedAndDeleted) {
  ASSERT_EQ(shell_.Run({"context", "list"}), 0);
  EXPECT_THAT(shell_.err, HasSubstr("leat context set NAME"));
  ASSERT_EQ(shell_.Run({"context", "set", "lab", "--coordinator", "lab:1"}), 0)
      << shell_.err;
  EXPECT_THAT(shell_.err, HasSubstr("is the current one"));
  ASSERT_EQ(shell_.Run({"context", "set", "farm", "--coordinator", "farm:2",
                        "--timeout", "30s", "-o", "wide"}),
            0)
      << shell_.err;
  EXPECT_THAT(shell_.err, Not(HasSubstr("current")));
  ASSERT_EQ(shell_.Run({"context", "list", "-o", "name"}), 0);
  EXPECT_EQ(shell_.out, "farm\nlab\n");
  ASSERT_EQ(shell_.Run({"context", "list", "-o", "json"}), 0);
  const Json list = Json::parse(shell_.out);
  EXPECT_EQ(list["contexts"][0]["coordinator"], "farm:2");
  EXPECT_EQ(list["contexts"][0]["output"], "wide");
  EXPECT_EQ(list["contexts"][1]["current"], true);
  ASSERT_EQ(shell_.Run({"context", "use", "farm"}), 0);
  ASSERT_EQ(shell_.Run({"context", "show"}), 0);
  EXPECT_THAT(shell_.out, AllOf(HasSubstr("farm:2"), HasSubstr("30s")));
  ASSERT_EQ(shell_.Run({"context", "show", "-o", "json"}), 0);
  EXPECT_EQ(Json::parse(shell_.out)["resolved"]["coordinator"], "farm:2");
  // Setting a value again replaces it; setting an empty one removes it.
  ASSERT_EQ(shell_.Run({"context", "set", "farm", "--timeout", ""}), 0)
      << shell_.err;
  ASSERT_EQ(shell_.Run({"context", "show", "farm"}), 0);
  EXPECT_THAT(shell_.out, Not(HasSubstr("30s")));
  ASSERT_EQ(shell_.Run({"context", "delete", "farm"}), 0);
  EXPECT_EQ(shell_.Run({"context", "show"}), 2);
  EXPECT_EQ(shell_.Run({"context", "use", "farm"}), 3);
  EXPECT_EQ(shell_.Run({"context", "use", "lba"}), 3);
  EXPECT_THAT(shell_.err, HasSubstr("did you mean lab?"));
}

TEST_F(ContextsTest, AreWrittenForTheirOwnerAlone) {
  path_ = folder_ / "deep" / "leat" / "config.yaml";
  shell_.variables = {{"LEAT_CONFIG", path_.string()}};
  const mode_t before = umask(0);
  ASSERT_EQ(shell_.Run({"context", "set", "lab", "--coordinator", "lab:1"}), 0)
      << shell_.err;
  umask(before);
  struct stat found {};
  ASSERT_EQ(stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(path_.parent_path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700u);
  size_t files = 0;
  for ([[maybe_unused]] const auto& each :
       std::filesystem::directory_iterator(path_.parent_path()))
    ++files;
  EXPECT_EQ(files, 1u) << "nothing is left beside it";
}

TEST_F(ContextsTest, ALinkStaysOne) {
  const auto target = folder_ / "target.yaml";
  std::ofstream(target) << "contexts: {}\n";
  ASSERT_EQ(chmod(target.c_str(), 0600), 0);
  std::filesystem::create_symlink(target, path_);
  ASSERT_EQ(shell_.Run({"context", "set", "lab", "--coordinator", "lab:1"}), 0);
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_THAT(Read(), HasSubstr("lab:1"));
}

TEST_F(ContextsTest, TheCurrentOneSaysWhereTheServiceIs) {
  File("lab.token", "secret-of-lab\n");
  File("ca.pem", "roots");
  Write(
      "current: lab\ncontexts:\n  lab:\n    coordinator: lab:1\n"
      "    access_token_file: lab.token\n    tls_ca: ~/ca.pem\n"
      "    timeout: 30s\n    output: json\n");
  shell_.variables["HOME"] = folder_.string();
  shell_.variables["LEAT_ACCESS_TOKEN"] = "secret-of-another";
  ASSERT_EQ(shell_.Run({"get", "workers"}), 0) << shell_.err;
  EXPECT_EQ(shell_.connected.address, "lab:1");
  EXPECT_EQ(shell_.connected.access_token, "secret-of-lab");
  EXPECT_EQ(shell_.connected.ca_pem, "roots");
  EXPECT_EQ(shell_.connected.timeout, absl::Seconds(30));
  EXPECT_TRUE(Json::accept(shell_.out)) << shell_.out;
  // Flags override it.
  ASSERT_EQ(shell_.Run({"get", "workers", "-o", "name", "--timeout", "1s"}), 0);
  EXPECT_EQ(shell_.connected.timeout, absl::Seconds(1));
  EXPECT_EQ(shell_.out, "node1\nnode2\n");
}

TEST_F(ContextsTest, TheSystemsRootsAreNoPathBesideTheFile) {
  shell_.variables["SSL_CERT_FILE"] = (folder_ / "bundle.pem").string();
  File("bundle.pem", "the system's roots");
  ASSERT_EQ(shell_.Run({"context", "set", "lab", "--coordinator", "lab:1",
                        "--tls-ca", "system"}),
            0)
      << shell_.err;
  EXPECT_THAT(Read(), HasSubstr("tls_ca: \"system\""));
  ASSERT_EQ(shell_.Run({"context", "use", "lab"}), 0) << shell_.err;
  ASSERT_EQ(shell_.Run({"get", "workers"}), 0) << shell_.err;
  EXPECT_EQ(shell_.connected.ca_pem, "the system's roots");
}

TEST_F(ContextsTest, NoTokenGoesToAnotherService) {
  File("lab.token", "secret-of-lab");
  Write(
      "current: lab\ncontexts:\n"
      "  lab: {coordinator: 'lab:1', access_token_file: lab.token}\n"
      "  open: {coordinator: 'open:2'}\n");
  // With an explicit address, nothing of the context is used.
  ASSERT_EQ(shell_.Run({"status", "--coordinator", "other:3"}), 0);
  EXPECT_EQ(shell_.connected.access_token, "");
  shell_.variables["LEAT_COORDINATOR"] = "other:4";
  shell_.variables["LEAT_ACCESS_TOKEN"] = "secret-of-other";
  ASSERT_EQ(shell_.Run({"status"}), 0);
  EXPECT_EQ(shell_.connected.address, "other:4");
  EXPECT_EQ(shell_.connected.access_token, "secret-of-other");
  // With an explicit context, nothing of the environment is used.
  ASSERT_EQ(shell_.Run({"--context", "open", "status"}), 0);
  EXPECT_EQ(shell_.connected.address, "open:2");
  EXPECT_EQ(shell_.connected.access_token, "");
  shell_.variables["LEAT_CONTEXT"] = "lab";
  ASSERT_EQ(shell_.Run({"status"}), 0);
  EXPECT_EQ(shell_.connected.address, "lab:1");
  EXPECT_EQ(shell_.connected.access_token, "secret-of-lab");
  EXPECT_EQ(shell_.Run({"--context", "lab", "--coordinator", "x:1", "status"}),
            2);
  EXPECT_EQ(shell_.Run({"--context", "lab", "--private", "status"}), 2);
  EXPECT_EQ(shell_.Run({"--context", "labb", "status"}), 3);
  EXPECT_THAT(shell_.err, HasSubstr("did you mean lab?"));
}

TEST_F(ContextsTest, ErrorsNameTheLineTheKeyAndWhatIsWanted) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"context: x\n", ":1: the file: unknown key \"context\"; did you mean "},
      {"contexts:\n  lab:\n    coordiantor: x:1\n",
       ":3: contexts.lab: unknown key \"coordiantor\"; did you mean "
       "coordinator?"},
      {"contexts:\n  lab:\n    coordinator: x\n",
       ":3: contexts.lab.coordinator \"x\": want HOST:PORT"},
      {"contexts:\n  lab:\n    coordinator: x:99999\n", "want HOST:PORT"},
      {"contexts:\n  lab:\n    timeout: 3s\n", "coordinator is missing"},
      {"contexts:\n  lab: {coordinator: 'x:1', timeout: soon}\n",
       "contexts.lab.timeout \"soon\""},
      {"contexts:\n  lab: {coordinator: 'x:1', output: jsn}\n",
       "did you mean json"},
      {"contexts:\n  lab: {coordinator: 'x:1', tls_cert: a}\n",
       "tls_cert and tls_key go together"},
      {"contexts:\n  'a b': {coordinator: 'x:1'}\n", ":2: context \"a b\""},
      {"contexts: [1]\n", ":1: contexts: want keys and values"},
      {"contexts:\n  lab: {coordinator: [1]}\n", "want a text"},
      {"current: lba\ncontexts:\n  lab: {coordinator: 'x:1'}\n",
       ":1: current: no context \"lba\"; did you mean lab?"},
      {"current: a\ncurrent: b\n", ":2: the file: \"current\" is there twice"},
      {"a: [\n", ":"},
  };
  for (const auto& [text, message] : table) {
    Write(text);
    EXPECT_EQ(shell_.Run({"status"}), 2) << text;
    EXPECT_THAT(shell_.err,
                AllOf(HasSubstr(path_.string()), HasSubstr(message)));
    EXPECT_THAT(shell_.out, IsEmpty());
    // Commands that use no service continue.
    EXPECT_EQ(shell_.Run({"version"}), 0);
  }
  // A secret in the place of a file name is not shown.
  Write(
      "contexts:\n  lab: {coordinator: 'x:1', access_token: leat_1_hidden}\n");
  EXPECT_EQ(shell_.Run({"status"}), 2);
  EXPECT_THAT(shell_.err, AllOf(HasSubstr("did you mean access_token_file?"),
                                Not(HasSubstr("hidden"))));
}

TEST_F(ContextsTest, OthersMayNotChangeItNorReadWhereSecretsAre) {
  const std::string open = "contexts:\n  lab: {coordinator: 'x:1'}\n";
  Write(open, 0644);
  EXPECT_EQ(shell_.Run({"--context", "lab", "status"}), 0) << shell_.err;
  Write(open, 0664);
  EXPECT_EQ(shell_.Run({"--context", "lab", "status"}), 1);
  EXPECT_THAT(shell_.err, HasSubstr("others may change it (mode 0664)"));
  Write(
      "contexts:\n  lab: {coordinator: 'x:1', access_token_file: /dev/null}\n",
      0644);
  EXPECT_EQ(shell_.Run({"--context", "lab", "status"}), 1);
  EXPECT_THAT(shell_.err, AllOf(HasSubstr("others may read it (mode 0644)"),
                                HasSubstr("chmod 600")));
}

TEST_F(ContextsTest, WhatIsSetIsCheckedAndHasPathsOfItsOwn) {
  EXPECT_EQ(shell_.Run({"context", "set", "lab"}), 2);
  EXPECT_THAT(shell_.err, HasSubstr("--coordinator HOST:PORT is missing"));
  EXPECT_EQ(shell_.Run({"context", "set", "lab", "--coordinator", "x"}), 2);
  EXPECT_EQ(shell_.Run({"context", "set", "a/b", "--coordinator", "x:1"}), 2);
  EXPECT_EQ(shell_.Run({"context", "set"}), 2);
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_EQ(shell_.Run({"context", "set", "null", "--coordinator", "x:1",
                        "--access-token-file", "t: \"#\n"}),
            0)
      << shell_.err;
  const absl::StatusOr<Contexts> read = ReadContexts(path_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->all.at("null").access_token_file,
            (std::filesystem::current_path() / "t: \"#\n").string());
}

TEST_F(ContextsTest, ThePlaceFollowsTheDesktopsConvention) {
  const auto path = [](std::map<std::string, std::string> variables) {
    return ContextsPath([=](const char* name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      if (found == variables.end()) return std::nullopt;
      return found->second;
    });
  };
  EXPECT_EQ(path({{"HOME", "/h"}}), "/h/.config/leat/config.yaml");
  EXPECT_EQ(path({{"HOME", "/h"}, {"XDG_CONFIG_HOME", "/x"}}),
            "/x/leat/config.yaml");
  EXPECT_EQ(path({{"HOME", "/h"}, {"LEAT_CONFIG", "/c"}}), "/c");
  EXPECT_EQ(path({}), "");
}

TEST_F(ContextsTest, WhoWritesWaitsForWhoeverWrites) {
  auto held = TryLockContexts(path_);
  ASSERT_TRUE(held.ok() && *held != nullptr);
  EXPECT_EQ(*TryLockContexts(path_), nullptr);
  EXPECT_EQ(shell_.Run({"context", "set", "lab", "--coordinator", "lab:1"}), 1);
  EXPECT_THAT(shell_.err, HasSubstr("another process has held its folder"));
  EXPECT_EQ(shell_.paused, absl::Seconds(10));
  EXPECT_EQ(shell_.Run({"context", "list"}), 0);
  held->reset();
  EXPECT_EQ(shell_.Run({"context", "set", "lab", "--coordinator", "lab:1"}), 0);
}

TEST_F(ContextsTest, ALinkThatLeadsToNothingYetStaysALink) {
  std::filesystem::create_symlink("real.yaml", path_);
  EXPECT_EQ(shell_.Run({"context", "set", "lab", "--coordinator", "lab:1"}), 0)
      << shell_.err;
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "real.yaml"));
}

TEST_F(ContextsTest, AFolderInThePlaceOfTheFileIsNamed) {
  std::filesystem::create_directory(path_);
  EXPECT_EQ(shell_.Run({"context", "list"}), 1);
  EXPECT_THAT(shell_.err, HasSubstr("it is no file, but a folder or a device"));
}

}  // namespace
}  // namespace leat::cli
