// SPDX-License-Identifier: Apache-2.0
//
// The scripts run in the shells themselves if those are installed.
#include "client/cli/commands/completion.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Completion : public ::testing::Test {
 protected:
  Completion() {
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("leat-completion-{}", getpid());
    std::filesystem::create_directories(folder_);
    // Replaces the program: prints names of any requested kind.
    std::ofstream(folder_ / "leat")
        << "#!/bin/sh\necho \"$2-a\"; echo \"$2-b\"\n";
    std::filesystem::permissions(folder_ / "leat",
                                 std::filesystem::perms::owner_all);
  }
  ~Completion() override { std::filesystem::remove_all(folder_); }

  // Returns the path of the script for `shell`.
  std::string Script(const std::string& shell) {
    Shell run;
    EXPECT_EQ(run.Run({"completion", shell}), 0);
    const std::string path = folder_ / ("completion." + shell);
    std::ofstream(path) << run.out;
    return path;
  }
  // Returns the output of a shell command, with its errors.
  std::string Output(const std::string& command) {
    const std::string path = folder_ / "command";
    std::ofstream(path) << command;
    FILE* pipe = popen(fmt::format("PATH={}:$PATH; export PATH; . {} 2>&1",
                                   folder_.string(), path)
                           .c_str(),
                       "r");
    std::string out;
    std::array<char, 4096> buffer;
    while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) {
      out.append(buffer.data(), n);
    }
    pclose(pipe);
    return out;
  }
  bool Installed(const std::string& shell) {
    return Output("command -v " + shell) != "";
  }
  // Returns bash's completions of the last of `words`.
  std::string Bash(const std::string& script, const std::string& words) {
    const std::string quoted = fmt::format(
        "bash --norc -c '. {}; COMP_WORDS=({}); "
        "COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _leat; "
        "echo \"${{COMPREPLY[*]}}\"'",
        script, words);
    return Output(quoted);
  }

  std::filesystem::path folder_;
};

TEST_F(Completion, BashOffersWhatBelongsThere) {
  if (!Installed("bash")) GTEST_SKIP() << "bash is not installed";
  const std::string script = Script("bash");
  EXPECT_EQ(Output("bash -n " + script), "");
  EXPECT_EQ(Bash(script, "leat sta"), "status state\n");
  EXPECT_EQ(Bash(script, "leat get wor"), "workers\n");
  EXPECT_EQ(Bash(script, "leat get jobs \"\""), "jobs-a jobs-b\n");
  EXPECT_EQ(Bash(script, "leat get shards \"\""), "datasets-a datasets-b\n");
  EXPECT_EQ(Bash(script, "leat drain workers-b"), "workers-b\n");
  EXPECT_EQ(Bash(script, "leat get jobs a b \"\""), "jobs-a jobs-b\n");
  EXPECT_EQ(Bash(script, "leat drain a b c d e f g h i j k workers-b"),
            "workers-b\n");
  EXPECT_EQ(Bash(script, "leat bottleneck a \"\""), "\n");
  EXPECT_EQ(Bash(script, "leat get -o js"), "json jsonl\n");
  // Another command of the program lists the names of contexts.
  EXPECT_EQ(Bash(script, "leat --context \"\""), "list-a list-b\n");
  EXPECT_EQ(Bash(script, "leat context use \"\""), "list-a list-b\n");
  EXPECT_EQ(Bash(script, "leat health m"), "mute\n");
  EXPECT_EQ(Bash(script, "leat --coordinator x:1 get -o json w"), "workers\n");
  EXPECT_EQ(Bash(script, "leat --color al"), "always\n");
  EXPECT_EQ(Bash(script, "leat --color = al"), "always\n");
  EXPECT_EQ(Bash(script, "leat get --output ="),
            "table wide json jsonl yaml csv name\n");
  EXPECT_EQ(Bash(script, "leat --color = always get w"), "workers\n");
  EXPECT_EQ(Bash(script, "leat log-level --worker \"\""),
            "workers-a workers-b\n");
  EXPECT_EQ(Bash(script, "leat delete job x --y"), "--yes\n");
  EXPECT_THAT(Bash(script, "leat get --"),
              ::testing::AllOf(HasSubstr("--watch"), HasSubstr("--tls-ca")));
  EXPECT_THAT(Bash(script, "leat sheet j -o /etc/pass"),
              HasSubstr("/etc/passwd"));
}

TEST_F(Completion, BashOffersNamesThatTheShellWouldExpand) {
  if (!Installed("bash")) GTEST_SKIP() << "bash is not installed";
  const std::string script = Script("bash");
  const std::string made = folder_ / "made";
  std::ofstream(folder_ / "leat")
      << "#!/bin/sh\nprintf '%s\\n' '$(touch " << made << ")' 'my data'\n";
  EXPECT_EQ(Bash(script, "leat get datasets \"\""),
            "\\$\\(touch\\ " + made + "\\) my\\ data\n");
  EXPECT_EQ(Bash(script, "leat refresh dataset my"), "my\\ data\n");
  EXPECT_FALSE(std::filesystem::exists(made));
}

TEST_F(Completion, ZshAcceptsTheScript) {
  if (!Installed("zsh")) GTEST_SKIP() << "zsh is not installed";
  const std::string script = Script("zsh");
  EXPECT_EQ(Output("zsh -n " + script), "");
  // Loading it defines the function, with the completion system on.
  EXPECT_THAT(Output(fmt::format("zsh -f -c 'autoload -U compinit; compinit -D "
                                 "-u; . {}; whence -w _leat'",
                                 script)),
              HasSubstr("_leat: function"));
}

TEST_F(Completion, FishOffersWhatBelongsThere) {
  if (!Installed("fish")) GTEST_SKIP() << "fish is not installed";
  const std::string script = Script("fish");
  EXPECT_EQ(Output("fish -n " + script), "");
  const auto offered = [&](const std::string& line) {
    return Output(
        fmt::format("HOME={} fish -N -c 'source {}; complete -C \"{}\"'",
                    folder_.string(), script, line));
  };
  EXPECT_THAT(offered("leat sta"), HasSubstr("status\t"));
  EXPECT_THAT(offered("leat get wor"), HasSubstr("workers"));
  EXPECT_THAT(offered("leat get jobs "), HasSubstr("jobs-b"));
  EXPECT_THAT(offered("leat get jobs a "), HasSubstr("jobs-b"));
  EXPECT_THAT(offered("leat get shards "), HasSubstr("datasets-a"));
  EXPECT_THAT(offered("leat get -o "), HasSubstr("yaml"));
  EXPECT_THAT(offered("leat drain "), HasSubstr("workers-a"));
  EXPECT_THAT(offered("leat get "), Not(HasSubstr("status")));
}

TEST_F(Completion, EveryCommandIsInEveryScript) {
  const CommandNode root = CommandLine().Tree();
  EXPECT_EQ(root.commands.size(), 30u);
  for (const CommandNode& command : root.commands) {
    for (const std::string& script :
         {BashCompletion(root), ZshCompletion(root), FishCompletion(root)}) {
      EXPECT_THAT(script, HasSubstr(command.name));
    }
  }
}

}  // namespace
}  // namespace leat::cli
