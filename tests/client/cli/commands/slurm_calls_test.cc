// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/slurm_calls.h"

#include "client/cli/base/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// squeue is started by `env`, and the other commands by their names.
TEST(SlurmCalls, AMachineWithoutSlurmIsToldSo) {
  const std::vector<absl::StatusOr<Ended>> missing = {
      Ended{127, "", "env: 'squeue': No such file or directory\n"},
      NotFound("there is no program env on the PATH")};
  for (const absl::StatusOr<Ended>& each : missing) {
    Shell shell;
    shell.spawn = [&](const std::vector<std::string>&) { return each; };
    EXPECT_EQ(shell.Run({"slurm", "status", "cpu", "--dir", "/tmp"}), kFailed);
    EXPECT_THAT(shell.err, HasSubstr("no program squeue on the PATH: run leat "
                                     "slurm where Slurm's commands are"));
    EXPECT_THAT(shell.err, Not(HasSubstr("refuses")));
  }
}

}  // namespace
}  // namespace leat::cli
