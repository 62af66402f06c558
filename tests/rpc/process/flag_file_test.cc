// SPDX-License-Identifier: Apache-2.0
#include "rpc/process/flag_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::rpc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A daemon with a flag of each kind.
struct Mill {
  std::string listen = "127.0.0.1:0";
  int threads = 0;
  std::string cache;
  bool insecure = false;
  std::vector<std::string> allow;
  int64_t timeout = 5;
  int ready_fd = -1;
  CLI::App app{"A mill.", "mill"};
  std::unique_ptr<FlagFile> file;

  Mill() {
    app.add_option("--listen", listen, "where to listen");
    app.add_option("--threads", threads, "grinding threads")
        ->check(CLI::Range(1, 64));
    app.add_option("--cache", cache, "bytes");
    app.add_flag("--insecure", insecure, "without a lock");
    app.add_option("--allow", allow, "what may be read");
    app.add_option_function<int64_t>(
           "--timeout-ms", [this](int64_t value) { timeout = value; }, "of all")
        ->check(CLI::Range(1, 1000));
    app.add_option("--ready-fd", ready_fd, "descriptor")->configurable(false);
    app.set_version_flag("--version", "1");
    file = std::make_unique<FlagFile>(&app);
  }

  absl::Status Start(std::vector<std::string> flags) {
    std::reverse(flags.begin(), flags.end());  // the order that CLI11 expects
    app.parse(flags);
    return file->Apply();
  }
};

std::string Refused(std::vector<std::string> flags) {
  Mill mill;
  std::reverse(flags.begin(), flags.end());
  try {
    mill.app.parse(flags);
  } catch (const CLI::ParseError& error) {
    return std::string(FlagError(mill.app, error).message());
  }
  return "";
}

TEST(FlagError, IsOneLineThatNamesTheFlagAndWhatWasMeant) {
  EXPECT_EQ(Refused({"--thread", "3"}),
            "there is no flag \"--thread\"; did you mean \"--threads\"?");
  EXPECT_EQ(Refused({"--thread=3"}),
            "there is no flag \"--thread\"; did you mean \"--threads\"?");
  EXPECT_EQ(Refused({"--something-else"}),
            "there is no flag \"--something-else\"; --help lists them");
  EXPECT_EQ(Refused({"3"}), "unexpected \"3\": want flags alone");
  EXPECT_THAT(Refused({"--threads", "many"}), HasSubstr("--threads"));
  EXPECT_THAT(Refused({"--threads", "a\nb"}), Not(HasSubstr("\n")));
  EXPECT_THAT(Refused({"--threads"}), HasSubstr("--threads"));
}

TEST(FlagError, NamesANumberThatDoesNotFit) {
  struct Rack {
    uint64_t sheaves = 0;
    int64_t depth = 0;
    CLI::App app{"A rack.", "rack"};
    FlagFile file{(app.add_option("--sheaves", sheaves, "how many"),
                   app.add_option("--depth", depth, "how deep"), &app)};
  };
  const auto refused = [](const char* flag, const char* value) {
    Rack rack;
    try {
      rack.app.parse(std::vector<std::string>{value, flag});
    } catch (const CLI::ParseError& error) {
      return std::string(FlagError(rack.app, error).message());
    }
    return std::string();
  };
  EXPECT_EQ(refused("--sheaves", "18446744073709551615"), "");
  EXPECT_THAT(refused("--sheaves", "18446744073709551616"),
              HasSubstr("--sheaves: \"18446744073709551616\": want a number"));
  EXPECT_EQ(refused("--depth", "-9223372036854775808"), "");
  EXPECT_THAT(refused("--depth", "9223372036854775808"),
              HasSubstr("--depth: \"9223372036854775808\": want a number"));
}

TEST(FlagHelp, NamesValuesAsPeopleDo) {
  Mill mill;
  const std::map<std::string, int> where = {{"all", 1}, {"remote", 0}};
  std::string format = "text";
  int of = 0;
  mill.app.add_option("--of", of, "x")
      ->transform(CLI::CheckedTransformer(where));
  mill.app.add_option("--log", format, "y")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  const std::string help = mill.app.help();
  EXPECT_THAT(help, HasSubstr("--threads 1 to 64"));
  EXPECT_THAT(help, HasSubstr("--of all|remote"));
  EXPECT_THAT(help, HasSubstr("--log text|json [text]"));
  EXPECT_THAT(help, HasSubstr("--allow TEXT ..."));
  EXPECT_THAT(help, Not(HasSubstr("INT")));
  EXPECT_THAT(help, Not(HasSubstr("->")));
}

class FlagFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "/flag_file_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    path_ = folder_ + "/mill.yaml";
  }
  void TearDown() override {
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }

  void Write(const std::string& text) { std::ofstream(path_) << text; }
  // Returns the error of a file; "": none.
  std::string Wrong(const std::string& text) {
    Write(text);
    const absl::Status status = Mill().Start({"--config", path_});
    if (status.ok()) return "";
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(status.message());
  }

  std::string folder_, path_;
};

TEST_F(FlagFileTest, GivesEveryKindOfFlag) {
  Write(
      "# a comment\n"
      "listen: 0.0.0.0:7411\n"
      "threads: 4\n"
      "cache: 8GiB\n"
      "insecure: true\n"
      "allow: [/data, \"s3://photos\"]\n"
      "timeout-ms: 30\n");
  Mill mill;
  ASSERT_TRUE(mill.Start({"--config", path_}).ok());
  EXPECT_EQ(mill.listen, "0.0.0.0:7411");
  EXPECT_EQ(mill.threads, 4);
  EXPECT_EQ(mill.cache, "8GiB");
  EXPECT_TRUE(mill.insecure);
  EXPECT_THAT(mill.allow, ElementsAre("/data", "s3://photos"));
  EXPECT_EQ(mill.timeout, 30);
  EXPECT_EQ(mill.file->Origin(), " (with " + path_ + ")");
}

TEST_F(FlagFileTest, TheCommandLineReplacesWhatTheFileSays) {
  Write("threads: 4\nallow: [/a, /b]\ninsecure: true\nlisten: here:1\n");
  Mill mill;
  ASSERT_TRUE(mill.Start({"--config", path_, "--threads", "2", "--allow", "/c",
                          "--insecure=false"})
                  .ok());
  EXPECT_EQ(mill.threads, 2);
  EXPECT_THAT(mill.allow, ElementsAre("/c"));
  EXPECT_FALSE(mill.insecure);
  EXPECT_EQ(mill.listen, "here:1");
}

TEST_F(FlagFileTest, AFileMaySayNothing) {
  for (const char* text : {"", "# nothing\n", "---\n", "{}\n"})
    EXPECT_EQ(Wrong(text), "") << text;
  Mill mill;
  EXPECT_TRUE(mill.Start({}).ok());
  EXPECT_EQ(mill.file->Origin(), "");
  EXPECT_FALSE(mill.file->check());
}

TEST_F(FlagFileTest, AnUnknownKeyIsNamedWithTheNearest) {
  const std::string wrong = Wrong("listen: a:1\ntreads: 4\n");
  EXPECT_THAT(wrong,
              AllOf(HasSubstr(path_ + ", line 2"), HasSubstr("\"treads\""),
                    HasSubstr("did you mean \"threads\"?")));
  EXPECT_THAT(Wrong("--threads: 4\n"), HasSubstr("did you mean \"threads\"?"));
  // If no key is near, the error lists all keys.
  EXPECT_THAT(Wrong("quern: 4\n"),
              AllOf(HasSubstr("\"quern\""), HasSubstr("timeout-ms")));
  EXPECT_THAT(Wrong("\"a\\e[31m\\n\": 4\n"), Not(HasSubstr("\x1b")));
}

TEST_F(FlagFileTest, ABadValueIsNamedWithItsKeyAndLine) {
  EXPECT_THAT(
      Wrong("\nthreads: many\n"),
      AllOf(HasSubstr("line 2"), HasSubstr("threads: "), HasSubstr("many")));
  EXPECT_THAT(Wrong("threads: 65\n"), AllOf(HasSubstr("65"), HasSubstr("64")));
  EXPECT_THAT(Wrong("timeout-ms: 0\n"), HasSubstr("timeout-ms"));
  EXPECT_THAT(Wrong("insecure: perhaps\n"),
              AllOf(HasSubstr("\"perhaps\""), HasSubstr("true or false")));
  EXPECT_THAT(Wrong("threads:\n"), HasSubstr("want one value"));
  EXPECT_THAT(Wrong("threads: \"\"\n"), HasSubstr("is empty"));
  EXPECT_THAT(Wrong("threads: [1, 2]\n"), HasSubstr("want one value"));
  EXPECT_THAT(Wrong("allow: []\n"), HasSubstr("a list of them"));
  EXPECT_THAT(Wrong("allow: {a: b}\n"), HasSubstr("a list of them"));
  EXPECT_THAT(Wrong("allow: [[a]]\n"), HasSubstr("a list of texts"));
  EXPECT_THAT(Wrong("threads: 1\nthreads: 2\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("twice")));
}

TEST_F(FlagFileTest, WhatIsForTheCommandLineIsRefused) {
  for (const char* key : {"ready-fd", "config", "check-config", "version"})
    EXPECT_THAT(Wrong(std::string(key) + ": 3\n"),
                HasSubstr("for the command line only"))
        << key;
}

TEST_F(FlagFileTest, OtherFilesAreRefusedWithoutTheirContent) {
  for (const char* text : {"- a\n- b\n", "just text\n", "a: 1\n---\nb: 2\n"})
    EXPECT_THAT(Wrong(text), HasSubstr("want one map of flags")) << text;
  EXPECT_THAT(Wrong("-----BEGIN KEY-----\nc2VjcmV0\n-----END KEY-----\n"),
              Not(HasSubstr("c2VjcmV0")));
  EXPECT_THAT(Wrong("listen: [a\nthreads: 4\n"),
              AllOf(HasSubstr(path_), HasSubstr("no YAML")));
  EXPECT_THAT(Wrong("? [a, b]\n: 1\n"), HasSubstr("name as the key"));
  EXPECT_THAT(Wrong("#" + std::string(FlagFile::kMaxBytes, 'x')),
              HasSubstr("at most 1048576 bytes"));
}

TEST_F(FlagFileTest, AFileThatCannotBeReadIsNamed) {
  absl::Status status = Mill().Start({"--config", path_});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--config " + path_));
  EXPECT_EQ(Mill().Start({"--config", folder_}).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);  // without a writer
  EXPECT_EQ(Mill().Start({"--config", path_}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(FlagFileTest, PrintsAFileThatGivesTheSameFlagsAgain) {
  Mill given;
  ASSERT_TRUE(given
                  .Start({"--print-config", "--listen", "[::]:7411", "--cache",
                          "say \"8\": #\\", "--insecure", "--allow", "/a b",
                          "--allow", "null"})
                  .ok());
  EXPECT_TRUE(given.file->print());
  Write(given.file->Text());
  Mill again;
  ASSERT_TRUE(again.Start({"--config", path_}).ok());
  EXPECT_EQ(again.listen, given.listen);
  EXPECT_EQ(again.cache, given.cache);
  EXPECT_TRUE(again.insecure);
  EXPECT_THAT(again.allow, ElementsAre("/a b", "null"));
}

TEST_F(FlagFileTest, PrintsEveryOtherFlagAsAComment) {
  const std::string text = Mill().file->Text();
  EXPECT_THAT(text,
              HasSubstr("\n# where to listen\n#listen: \"127.0.0.1:0\"\n"));
  EXPECT_THAT(text, HasSubstr("\n# grinding threads\n#threads:\n"));
  EXPECT_THAT(text, HasSubstr("\n#insecure: false\n"));
  EXPECT_THAT(text, HasSubstr("\n#allow:\n"));
  EXPECT_THAT(text, Not(HasSubstr("#ready-fd")));
  EXPECT_THAT(text, Not(HasSubstr("#config")));
  EXPECT_THAT(text, Not(HasSubstr("#version")));
  EXPECT_EQ(Wrong(text), "");
}

}  // namespace
}  // namespace leat::rpc
