// SPDX-License-Identifier: Apache-2.0
//
// groff itself renders the pages if it is installed.
#include "client/cli/commands/man.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::map<std::string, std::string> Pages() {
  return ManPages(CommandLine().Tree(), "0.2.0");
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '-' ? std::string("\\-") : std::string(1, c);
  return out;
}

TEST(ManPages, EveryCommandAndOptionHasItsPlace) {
  const CommandNode root = CommandLine().Tree();
  const auto pages = Pages();
  EXPECT_EQ(pages.size(), root.commands.size() + 1);
  for (const CommandNode& command : root.commands) {
    const auto page = pages.find("leat-" + command.name + ".1");
    ASSERT_NE(page, pages.end()) << command.name;
    EXPECT_THAT(pages.at("leat.1"), HasSubstr(Escaped("leat-" + command.name)));
    EXPECT_FALSE(command.examples.empty()) << command.name;
    EXPECT_THAT(page->second, HasSubstr(".SH EXAMPLES"));
    for (const OptionNode& option : command.options)
      for (const std::string& flag : option.flags)
        EXPECT_THAT(page->second, HasSubstr("\\fB" + Escaped(flag) + "\\fR"));
    for (const PositionalNode& positional : command.positionals)
      EXPECT_THAT(page->second, HasSubstr("\\fI" + positional.name + "\\fR"));
  }
  for (const OptionNode& option : root.options)
    EXPECT_THAT(pages.at("leat.1"),
                HasSubstr("\\fB" + Escaped(option.flags.back()) + "\\fR"));
}

TEST(ManPages, EveryCommandIsInTheManualToo) {
  std::stringstream manual;
  manual
      << std::ifstream(LEAT_SOURCE_DIR "/docs/reference/cli/index.md").rdbuf();
  const std::string text = manual.str();
  for (const CommandNode& command : CommandLine().Tree().commands)
    EXPECT_THAT(text, HasSubstr("`leat " + command.name + "`"))
        << "run docs/site/program_pages.py";
}

TEST(ManPages, SayWhereSeveralNamesAreTaken) {
  EXPECT_THAT(Pages().at("leat-describe.1"),
              HasSubstr(" \\fIKIND\\fR [\\fINAME\\fR ...]"));
  EXPECT_THAT(Pages().at("leat-delete.1"),
              HasSubstr(" \\fIKIND\\fR [\\fINAME\\fR ...]"));
  EXPECT_THAT(Pages().at("leat-drain.1"), HasSubstr(" \\fIWORKER\\fR ..."));
}

TEST(ManPages, HoldNoRequestThatIsNotMeant) {
  const std::set<std::string> known = {".\\\"", ".TH", ".SH", ".TP",
                                       ".PP",   ".nf", ".fi"};
  for (const auto& [name, text] : Pages()) {
    EXPECT_THAT(text, StartsWith(".\\\" Made by")) << name;
    EXPECT_TRUE(text.ends_with('\n')) << name;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with('.') && !line.starts_with('\'')) continue;
      EXPECT_TRUE(known.contains(line.substr(0, line.find(' '))))
          << name << ": " << line;
    }
  }
}

// Returns the output of a shell command, with its errors.
std::string Output(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::string out;
  std::array<char, 4096> buffer;
  while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe))
    out.append(buffer.data(), n);
  pclose(pipe);
  return out;
}

TEST(ManPages, AreWrittenAndReadWell) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                       fmt::format("leat-man-{}", getpid());
  Shell shell;
  EXPECT_EQ(shell.Run({"man", "/proc/self/comm/man1"}), 1);
  EXPECT_THAT(shell.err, HasSubstr("/proc/self/comm/man1: Not a directory"));
  EXPECT_EQ(shell.Run({"man", "/tmp/" + std::string(300, 'x')}), 1);
  EXPECT_THAT(shell.err, HasSubstr("x: File name too long"));
  // A folder that is missing is made.
  ASSERT_EQ(shell.Run({"man", folder}), 0) << shell.err;
  size_t files = 0;
  for (const auto& page : std::filesystem::directory_iterator(folder)) {
    ++files;
    if (Output("command -v groff").empty()) continue;
    EXPECT_EQ(Output(fmt::format("groff -man -Tutf8 -ww -z {}",
                                 page.path().string())),
              "")
        << page.path();
  }
  EXPECT_EQ(files, Pages().size());
  const std::string text = Output(fmt::format(
      "groff -man -Tascii -P-cbou {}", (folder / "leat-access.1").string()));
  std::filesystem::remove_all(folder);
  if (Output("command -v groff").empty()) GTEST_SKIP() << "no groff here";
  EXPECT_THAT(text,
              HasSubstr("leat access create --role trainer --name vision"));
  EXPECT_THAT(text, HasSubstr("-o, --output FORMAT"));
  EXPECT_THAT(text, Not(HasSubstr("\\")));
}

}  // namespace
}  // namespace leat::cli
