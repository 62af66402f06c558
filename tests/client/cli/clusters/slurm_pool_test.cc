// SPDX-License-Identifier: Apache-2.0
//
// How the queue of Slurm is read, and the names of jobs in it.
#include "client/cli/clusters/slurm_pool.h"

#include "client/cli/base/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

TEST(SlurmQueue, IsReadAsSlurmPrintsIt) {
  const auto queue = ParseQueue(
      "12|3|R|None|n1\n"
      "12|4-999%2|PD|JobArrayTaskLimit|\n"
      "13|1,3,7-9|PD|JobHeldUser|\n"
      "14|N/A|CG|None|n[1-2]\n\n");
  ASSERT_TRUE(queue.ok()) << queue.status();
  ASSERT_EQ(queue->size(), 4u);
  EXPECT_EQ((*queue)[0].state, SlurmTasks::State::kRunning);
  EXPECT_EQ((*queue)[1].count, 996u);
  EXPECT_EQ((*queue)[1].throttle, 2u);
  EXPECT_FALSE((*queue)[1].held);
  EXPECT_EQ((*queue)[2].count, 5u);
  EXPECT_EQ((*queue)[2].throttle, 0u);
  EXPECT_TRUE((*queue)[2].held);
  EXPECT_EQ((*queue)[3].state, SlurmTasks::State::kOther);
  for (const char* bad : {"12|3|R|None", "x|3|R|None|n", "12|3-1|R|None|n",
                          "12|3...|PD|None|", "12||PD|None|"})
    EXPECT_FALSE(ParseQueue(bad).ok()) << bad;
}

TEST(SlurmPool, NoWorkersHaveTheNameOfAnotherPoolsCoordinator) {
  ASSERT_EQ(SlurmJobName("a-coordinator"), CoordinatorJobName("a"));
  Shell shell;
  shell.spawn = [](const std::vector<std::string>& argv) {
    ADD_FAILURE() << argv[0];
    return Ended();
  };
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"up", "a-coordinator", "--dir", "/tmp",
                                 "--max", "1", "--insecure"},
        {"scale", "a-coordinator", "--dir", "/tmp"},
        {"status", "a-coordinator", "--dir", "/tmp"},
        {"down", "a-coordinator"}}) {
    std::vector<std::string> words = {"slurm"};
    words.insert(words.end(), command.begin(), command.end());
    EXPECT_EQ(shell.Run(words), kWrongUse);
    EXPECT_THAT(shell.err,
                ::testing::HasSubstr("does not end in -coordinator"));
  }
}

}  // namespace
}  // namespace leat::cli
