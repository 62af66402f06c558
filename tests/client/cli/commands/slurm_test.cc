// SPDX-License-Identifier: Apache-2.0
//
// leat slurm against a scripted Slurm.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "client/cli/base/exit_code.h"
#include "client/cli/base/fields.h"
#include "client/cli/clusters/slurm_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Arrays with throttles, as squeue, scontrol, scancel and sbatch see them.
class FakeSlurm {
 public:
  struct Array {
    uint64_t next = 0, size = 0, throttle = 1;
    bool held = false;
    std::set<uint64_t> running;
  };
  std::map<uint64_t, Array> arrays;
  std::string coordinator;  // its line of the queue; empty: none runs
  std::vector<std::string> log;
  std::string refuses;      // the program that fails
  std::string dies_saying;  // log of a coordinator that ends at once
  std::string waits;        // why a coordinator is not started
  // One more task starts before waiting tasks are cancelled.
  bool starts_another = false;

  // Starts the tasks that may run.
  void Settle() {
    for (auto& [id, array] : arrays)
      while (!array.held && array.next < array.size &&
             array.running.size() < array.throttle)
        array.running.insert(array.next++);
  }
  std::vector<std::string> Running() const {
    std::vector<std::string> names;
    for (const auto& [id, array] : arrays)
      for (const uint64_t index : array.running)
        names.push_back(fmt::format("{}_{}", id, index));
    return names;
  }

  absl::StatusOr<Ended> operator()(const std::vector<std::string>& argv) {
    const std::string line = fmt::format("{}", fmt::join(argv, " "));
    if (argv[0] == refuses) return Ended{1, "", argv[0] + ": error: busy\n"};
    if (argv[0] == "env")
      return Ended{
          0,
          line.find("coordinator") != std::string::npos ? coordinator : Lines(),
          ""};
    log.push_back(line);
    if (argv[0] == "scancel") {
      EXPECT_EQ(argv[1], "--quiet");
      if (argv[2] == "--state=PENDING" &&
          std::exchange(starts_another, false)) {
        Array& array = arrays.at(std::stoull(argv[3]));
        array.running.insert(array.next++);
      }
    }
    if (argv[0] == "sbatch") return Submit(argv);
    if (argv[0] == "scontrol") Control(argv);
    if (argv[0] == "scancel") Cancel({argv.begin() + 1, argv.end()});
    Settle();
    return Ended{};
  }

 private:
  std::string Lines() const {
    std::string lines;
    for (const auto& [id, array] : arrays) {
      for (const uint64_t index : array.running)
        lines += fmt::format("{}|{}|R|None|n1\n", id, index);
      if (array.next < array.size)
        lines += fmt::format("{}|{}-{}%{}|PD|{}|\n", id, array.next,
                             array.size - 1, array.throttle,
                             array.held ? "JobHeldUser" : "JobArrayTaskLimit");
    }
    return lines;
  }
  Ended Submit(const std::vector<std::string>& argv) {
    ++last_;
    if (argv.size() > 3) {
      Array& array = arrays[last_];
      array.held = argv[2] == "--hold";
      unsigned size = 0;
      EXPECT_EQ(sscanf(argv[3].c_str(), "--array=0-%u%%1", &size), 1);
      array.size = size + 1;
    } else {
      if (!dies_saying.empty()) {
        std::ofstream(std::filesystem::path(argv[2]).parent_path() /
                      "log/coordinator.log")
            << dies_saying;
        return Ended{0, fmt::format("{}\n", last_), ""};
      }
      coordinator = fmt::format("{}|N/A|PD|{}|\n", last_, waits);
      if (!waits.empty()) return Ended{0, fmt::format("{}\n", last_), ""};
      coordinator = fmt::format("{}|N/A|R|None|n1\n", last_);
      const std::string dir =
          std::filesystem::path(argv[2]).parent_path().string();
      std::ofstream(dir + "/address") << "n1:40001\n";
    }
    return Ended{0, fmt::format("{}\n", last_), ""};
  }
  void Control(const std::vector<std::string>& argv) {
    if (argv[1] == "release") arrays.at(std::stoull(argv[2])).held = false;
    if (argv[1] != "update") return;
    const uint64_t throttle =
        std::stoull(argv[3].substr(argv[3].find('=') + 1));
    EXPECT_GT(throttle, 0u) << "it would be none";
    arrays.at(std::stoull(argv[2].substr(6))).throttle = throttle;
  }
  void Cancel(const std::vector<std::string>& argv) {
    if (argv[1] == "--state=PENDING") {
      Array& array = arrays.at(std::stoull(argv[2]));
      array.next = array.size;
    }
    if (argv[1] != "--signal=TERM") return;
    for (size_t i = 3; i < argv.size(); ++i) {
      const size_t at = argv[i].find('_');
      if (at == std::string::npos)
        coordinator.clear();
      else
        arrays.at(std::stoull(argv[i].substr(0, at)))
            .running.erase(std::stoull(argv[i].substr(at + 1)));
    }
  }
  uint64_t last_ = 10;
};

class SlurmCommand : public ::testing::Test {
 protected:
  SlurmCommand()
      : dir_(std::filesystem::temp_directory_path() /
             fmt::format("leat-slurm-test-{}", getpid())) {
    std::filesystem::remove_all(dir_);
    shell_.spawn = [this](const std::vector<std::string>& argv) {
      return slurm_(argv);
    };
  }
  ~SlurmCommand() override { std::filesystem::remove_all(dir_); }

  int Scale(uint64_t desired, const std::vector<std::string>& drain = {},
            uint64_t array_size = 100) {
    const Json pool = {{"max", 9}, {"desired", desired}, {"drain", drain}};
    shell_.service.pools_seen = {pool.dump()};
    return shell_.Run({"slurm", "scale", "cpu", "--dir", dir_, "--once",
                       "--array-size", fmt::format("{}", array_size)});
  }
  std::string File(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(dir_ + "/" + name).rdbuf();
    return text.str();
  }

  const std::string dir_;
  FakeSlurm slurm_;
  Shell shell_;
};

TEST_F(SlurmCommand, FollowsThePoolUpAndDown) {
  EXPECT_EQ(Scale(1), kGood) << shell_.err;
  EXPECT_THAT(slurm_.Running(), ElementsAre("11_0"));
  EXPECT_EQ(Scale(5), kGood) << shell_.err;
  EXPECT_THAT(slurm_.Running(),
              ElementsAre("11_0", "11_1", "11_2", "11_3", "11_4"));
  EXPECT_EQ(Scale(2, {"cpu.11_1", "cpu.11_3.r2", "cpu.11_4"}), kGood);
  EXPECT_THAT(slurm_.Running(), ElementsAre("11_0", "11_2"));
  // If the state is as wanted, nothing is changed.
  slurm_.log.clear();
  EXPECT_EQ(Scale(2), kGood);
  EXPECT_THAT(slurm_.log, IsEmpty());
}

TEST_F(SlurmCommand, AnArrayThatIsUsedUpIsFollowedByAnother) {
  std::set<std::string> seen;
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(Scale(3, {}, 10), kGood) << shell_.err;
    ASSERT_EQ(slurm_.Running().size(), 3u);
    for (const std::string& task : slurm_.Running()) seen.insert(task);
    // One ends by itself.
    for (auto& [id, array] : slurm_.arrays)
      if (!array.running.empty()) {
        array.running.erase(array.running.begin());
        break;
      }
    slurm_.Settle();
  }
  EXPECT_GE(seen.size(), 50u);
  EXPECT_LE(slurm_.arrays.size(), 8u);
}

TEST_F(SlurmCommand, ThereAreNeverMoreThanWanted) {
  for (const uint64_t desired : {4, 1, 7, 0, 0, 3, 9, 2, 0, 5}) {
    std::vector<std::string> drain;
    const std::vector<std::string> before = slurm_.Running();
    for (size_t i = desired; i < before.size(); ++i)
      drain.push_back("cpu." + before[i]);
    ASSERT_EQ(Scale(desired, drain, 12), kGood) << shell_.err;
    EXPECT_EQ(slurm_.Running().size(), desired);
    // The second adapter does the same.
    ASSERT_EQ(Scale(desired, drain, 12), kGood) << shell_.err;
    EXPECT_EQ(slurm_.Running().size(), desired);
  }
}

TEST_F(SlurmCommand, TwoArraysOfTwoAdaptersAreOneInReserve) {
  // Both saw an empty queue.
  slurm_.arrays[11] = {.size = 100, .held = true};
  slurm_.arrays[12] = {.size = 100, .held = true};
  EXPECT_EQ(Scale(3), kGood);
  EXPECT_THAT(slurm_.Running(), ElementsAre("11_0", "11_1", "11_2"));
  EXPECT_TRUE(slurm_.arrays[12].held);
}

TEST_F(SlurmCommand, APoolThatNobodySetIsLeftAlone) {
  shell_.service.pools_seen = {R"({"max": 0, "desired": 0, "drain": []})"};
  EXPECT_EQ(shell_.Run({"slurm", "scale", "cpu", "--dir", dir_, "--once"}),
            kGood);
  EXPECT_THAT(slurm_.log, IsEmpty());
}

TEST_F(SlurmCommand, WorkersOfOthersAreNotSignalled) {
  EXPECT_EQ(Scale(2), kGood);
  slurm_.log.clear();
  EXPECT_EQ(Scale(2, {"cpu.99_1", "gpu.11_0", "cpu.11", "cpu.11_0x", "node7",
                      "cpu.11_7"}),
            kGood);
  EXPECT_THAT(slurm_.log, IsEmpty());
}

TEST_F(SlurmCommand, ASlurmThatRefusesIsNamedAndTheNextTimeIsTried) {
  slurm_.refuses = "sbatch";
  EXPECT_EQ(Scale(2), kCannotConnect);
  EXPECT_THAT(shell_.err, HasSubstr("sbatch: error: busy"));
  slurm_.refuses = "";
  EXPECT_EQ(Scale(2), kGood);
  EXPECT_EQ(slurm_.Running().size(), 2u);
  shell_.spawn = [](const std::vector<std::string>&) -> absl::StatusOr<Ended> {
    return Ended{0, "slurmctld is in maintenance\n", ""};
  };
  EXPECT_EQ(Scale(2), kFailed);
  EXPECT_THAT(shell_.err, HasSubstr("want JOB|INDEXES|STATE"));
}

TEST_F(SlurmCommand, ATaskThatEndedMeanwhileHoldsNothingUp) {
  ASSERT_EQ(Scale(3), kGood);
  slurm_.refuses = "scancel";
  EXPECT_EQ(Scale(2, {"cpu.11_0"}), kGood) << shell_.err;
  EXPECT_THAT(shell_.err, HasSubstr("scancel: error: busy"));
}

TEST_F(SlurmCommand, UpWritesTheScriptsAndSaysTheAddress) {
  EXPECT_EQ(shell_.Run({"slurm", "up", "cpu", "--dir", dir_, "--min", "2",
                        "--max", "8", "--cpus", "4", "--listen", "127.0.0.1",
                        "--worker=--allow=/my data", "--worker=--cache=1GiB",
                        "--coordinator-flag=--cluster=my own",
                        "--sbatch=--partition=p", "--array-size", "50"}),
            kGood)
      << shell_.err;
  EXPECT_EQ(shell_.out, "n1:40001\n");
  EXPECT_EQ(
      std::filesystem::status(dir_ + "/token").permissions(),
      std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(File("token").size(), 65u);
  const std::string worker = File("worker.sbatch");
  for (const char* part :
       {"#SBATCH --job-name=leat-cpu\n", "#SBATCH --cpus-per-task=4\n",
        "#SBATCH --partition=p\n", "--signal=B:TERM@120", "'--allow=/my data'",
        "'--cache=1GiB'", "host='127.0.0.1'"})
    EXPECT_THAT(worker, HasSubstr(part));
  const std::string coordinator = File("coordinator.sbatch");
  for (const char* part :
       {"--job-name=leat-cpu-coordinator\n", "pool set 'cpu' --min 2 --max 8",
        "--array-size 50", "'--cluster=my own'", "--signal=B:USR1@120"})
    EXPECT_THAT(coordinator, HasSubstr(part));
  for (const std::string& script : {worker, coordinator})
    for (const char* left : {"{DIR}", "{POOL}", "{LISTEN}", "{TLS}", "{MIN}",
                             "{MAX}", "{ARRAY}", "{INSECURE}", "_FLAGS}"})
      EXPECT_THAT(script, Not(HasSubstr(left)));
  EXPECT_THAT(slurm_.log, ElementsAre(HasSubstr("coordinator.sbatch")));
  // The second time nothing is submitted, and the token stays.
  const std::string token = File("token");
  EXPECT_EQ(shell_.Run({"slurm", "up", "cpu", "--dir", dir_, "--max", "8"}),
            kGood);
  EXPECT_EQ(slurm_.log.size(), 1u);
  EXPECT_EQ(File("token"), token);
}

TEST_F(SlurmCommand, UpLooksAtTheCertificatesBeforeAnythingIsSubmitted) {
  const auto up = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"slurm", "up", "cpu", "--dir", dir_, "--max", "8"});
    EXPECT_EQ(shell_.Run(flags), kWrongUse);
    return shell_.err;
  };
  const std::string tls = dir_ + "-tls";
  EXPECT_THAT(up({}), HasSubstr("up: --tls is missing"));
  EXPECT_THAT(up({"--tls", tls}), HasSubstr(tls));
  std::filesystem::create_directories(tls);
  EXPECT_THAT(up({"--tls", tls}), HasSubstr("want ca.pem in it"));
  std::ofstream(tls + "/ca.pem") << "x";
  std::ofstream(tls + "/node.pem") << "x";
  EXPECT_THAT(up({"--tls", tls}), HasSubstr("want node.pem and node.key"));
  EXPECT_THAT(slurm_.log, IsEmpty());
  std::ofstream(tls + "/node.key") << "x";
  EXPECT_EQ(shell_.Run({"slurm", "up", "cpu", "--dir", dir_, "--max", "8",
                        "--tls", tls}),
            kGood)
      << shell_.err;
  std::filesystem::remove_all(tls);
}

TEST_F(SlurmCommand, UpEndsWithTheJobAndSaysTheLastLineOfItsLog) {
  slurm_.dies_saying =
      "leat-coordinator: --state: no room\n"
      "leat slurm: the coordinator does not serve\n\n";
  EXPECT_EQ(shell_.Run({"slurm", "up", "cpu", "--dir", dir_, "--max", "8",
                        "--insecure"}),
            kFailed);
  EXPECT_THAT(shell_.err,
              HasSubstr("the coordinator's job has ended: leat-coordinator: "
                        "--state: no room\n"));
}

TEST_F(SlurmCommand, UpSaysWhyTheCoordinatorWaitsInTheQueue) {
  ASSERT_EQ(Scale(2), kGood);
  slurm_.waits = "PartitionDown";
  EXPECT_EQ(shell_.Run({"slurm", "up", "cpu", "--dir", dir_, "--max", "8",
                        "--insecure", "--within", "20s"}),
            kCannotConnect);
  EXPECT_THAT(shell_.err,
              HasSubstr("it waits in Slurm's queue (PartitionDown); 2 workers "
                        "of the pool run: \"leat slurm down cpu\" ends them"));
  EXPECT_THAT(shell_.err, HasSubstr("for 20s (PartitionDown), and stays"));
  EXPECT_THAT(shell_.err, Not(HasSubstr("leat status")));
  EXPECT_EQ(shell_.err.find("it waits"), shell_.err.rfind("it waits"));
}

TEST_F(SlurmCommand, TheScriptsAreGoodForTheShell) {
  ASSERT_EQ(shell_.Run({"slurm", "up", "cpu", "--dir", dir_, "--max", "8",
                        "--insecure", "--worker=--name=it's"}),
            kGood)
      << shell_.err;
  for (const char* name : {"worker.sbatch", "coordinator.sbatch"}) {
    const absl::StatusOr<Ended> checked =
        Spawn({"bash", "-n", dir_ + "/" + name}, absl::Seconds(20));
    ASSERT_TRUE(checked.ok()) << checked.status();
    EXPECT_EQ(checked->exit_code, 0) << checked->err;
  }
}

TEST_F(SlurmCommand, DownEndsTheCoordinatorFirst) {
  ASSERT_EQ(shell_.Run({"slurm", "up", "cpu", "--dir", dir_, "--max", "8",
                        "--insecure"}),
            kGood);
  ASSERT_EQ(Scale(2), kGood);
  slurm_.log.clear();
  EXPECT_EQ(shell_.Run({"slurm", "down", "cpu"}), kGood) << shell_.err;
  ASSERT_FALSE(slurm_.log.empty());
  EXPECT_EQ(slurm_.log[0], "scancel --quiet --signal=TERM --batch 11");
  EXPECT_THAT(slurm_.Running(), IsEmpty());
  EXPECT_THAT(shell_.err, HasSubstr("2 workers drain"));
  EXPECT_EQ(shell_.Run({"slurm", "status", "cpu", "--dir", dir_}), kGood);
}

TEST_F(SlurmCommand, DownEndsATaskThatHasJustStarted) {
  ASSERT_EQ(shell_.Run({"slurm", "up", "cpu", "--dir", dir_, "--max", "8",
                        "--insecure"}),
            kGood);
  ASSERT_EQ(Scale(2), kGood);
  slurm_.starts_another = true;
  EXPECT_EQ(shell_.Run({"slurm", "down", "cpu"}), kGood) << shell_.err;
  EXPECT_THAT(slurm_.Running(), IsEmpty());
  EXPECT_THAT(shell_.err, HasSubstr("3 workers drain"));
}

TEST_F(SlurmCommand, StatusShowsEveryTask) {
  ASSERT_EQ(shell_.Run({"slurm", "up", "cpu", "--dir", dir_, "--max", "8",
                        "--insecure"}),
            kGood);
  ASSERT_EQ(Scale(2), kGood);
  EXPECT_EQ(shell_.Run({"slurm", "status", "cpu", "--dir", dir_}), kGood);
  for (const char* part :
       {"n1:40001", "coordinator", "12_0", "12_1", "12_2-99"})
    EXPECT_THAT(shell_.out, HasSubstr(part));
}

TEST_F(SlurmCommand, WhatIsMissingOrWrongIsNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table = {
      {{"slurm"}, "ACTION"},
      {{"slurm", "start", "cpu"}, "ACTION"},
      {{"slurm", "up"}, "POOL"},
      {{"slurm", "up", "cpu", "--max", "3"}, "--dir"},
      {{"slurm", "up", "cpu", "--dir", dir_}, "--max"},
      {{"slurm", "up", "a b", "--dir", dir_, "--max", "3"}, "a b"},
      {{"slurm", "up", "cpu", "--dir", "/a b", "--max", "3"}, "without spaces"},
      {{"slurm", "up", "cpu", "--dir", dir_, "--min", "4", "--max", "3"},
       "min 4 and max 3"},
      {{"slurm", "up", "cpu", "--dir", dir_, "--max", "3", "--worker=a\nb"},
       "--worker"},
      {{"slurm", "up", "cpu", "--dir", dir_, "--max", "3",
        "--coordinator-flag=a\nb"},
       "--coordinator-flag"},
      {{"slurm", "up", "cpu", "--dir", dir_, "--max", "3", "--sbatch=a\nb"},
       "--sbatch"},
  };
  for (const auto& [command, part] : table) {
    EXPECT_EQ(shell_.Run(command), kWrongUse) << part;
    EXPECT_THAT(shell_.err, HasSubstr(part));
  }
  EXPECT_THAT(slurm_.log, IsEmpty());
}

}  // namespace
}  // namespace leat::cli
