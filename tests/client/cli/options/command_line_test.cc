// SPDX-License-Identifier: Apache-2.0
#include "client/cli/options/command_line.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Help, OfACommandIsThatOfItsOption) {
  for (const CommandNode& command : CommandLine().Tree().commands) {
    Shell asked, given;
    EXPECT_EQ(asked.Run({"help", command.name}), 0) << command.name;
    EXPECT_EQ(given.Run({command.name, "--help"}), 0) << command.name;
    EXPECT_EQ(asked.out, given.out) << command.name;
    EXPECT_THAT(asked.out, HasSubstr(command.name));
  }
}

TEST(Help, AloneListsTheCommands) {
  Shell asked, given;
  EXPECT_EQ(asked.Run({"help"}), 0);
  EXPECT_EQ(given.Run({"--help"}), 0);
  EXPECT_EQ(asked.out, given.out);
  EXPECT_THAT(asked.err, IsEmpty());
}

TEST(Numbers, BelowZeroAreRefusedInFewWords) {
  for (const char* flag : {"--step", "--epoch"})
    for (const char* command : {"why", "sheet"}) {
      Shell shell;
      EXPECT_EQ(shell.Run({command, "resnet50", flag, "-1"}), 2);
      EXPECT_THAT(shell.err,
                  HasSubstr(fmt::format("{}: \"-1\": want 0", flag)));
      EXPECT_LT(shell.err.size(), 120u) << shell.err;
    }
}

TEST(Numbers, Of2To64AndMoreAreRefused) {
  for (const char* step : {"18446744073709551616", "0x1ffffffffffffffff"}) {
    Shell shell;
    EXPECT_EQ(shell.Run({"why", "resnet50", "--step", step}), 2);
    EXPECT_THAT(shell.err,
                HasSubstr(fmt::format(
                    "--step: \"{}\": want a number of 64 bits\n", step)));
    EXPECT_THAT(shell.service.calls, IsEmpty());
  }
}

TEST(Numbers, WithZerosInFrontAreDecimal) {
  Shell shell;
  shell.service.explained = "[]";
  EXPECT_EQ(shell.Run({"why", "resnet50", "--epoch", "08", "--step", "00340",
                       "--row", "001"}),
            0)
      << shell.err;
  EXPECT_EQ(shell.Run({"why", "resnet50", "--epoch", "000", "--step", "0x10"}),
            0);
  EXPECT_THAT(shell.service.calls,
              ::testing::ElementsAre("explain resnet50 8 340 1",
                                     "explain resnet50 0 16 all"));
  EXPECT_EQ(shell.Run({"top", "--rows", "0"}), 2);
}

TEST(Help, NamesTheNearestCommand) {
  Shell shell;
  EXPECT_EQ(shell.Run({"help", "gett"}), 2);
  EXPECT_THAT(shell.err, HasSubstr("unknown command \"gett\""));
  EXPECT_THAT(shell.err, HasSubstr("did you mean get"));
  EXPECT_THAT(shell.err, HasSubstr("\"leat --help\" lists the commands"));
  EXPECT_THAT(shell.out, IsEmpty());
}

}  // namespace
}  // namespace leat::cli
