// SPDX-License-Identifier: Apache-2.0
#include "rpc/process/machine.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "tests/worker/temp_dir.h"

namespace leat::rpc {
namespace {

class CoresTest : public testing::Test {
 protected:
  MachinePaths paths() const {
    return {.cgroup_root = dir_.path() + "/cg",
            .self_cgroup = dir_.path() + "/self",
            .meminfo = dir_.path() + "/meminfo"};
  }
  void Write(const std::string& name, const std::string& text) {
    dir_.Write(name, text);
  }
  leat::worker::TempDir dir_;
};

TEST(Machine, HasACoreAndAName) {
  EXPECT_GE(UsableCores(), 1);
  EXPECT_FALSE(HostName().empty());
}

TEST_F(CoresTest, WithoutControlGroupsTheAffinityMaskDecides) {
  EXPECT_EQ(UsableCores(paths(), 6), 6);
  EXPECT_EQ(UsableCores(paths(), 0), 1);
}

TEST_F(CoresTest, TheSmallestQuotaOfNestedGroupsCounts) {
  EXPECT_EQ(CoresByQuota(paths()), 0);
  Write("self", "0::/a/b\n");
  Write("cg/cpu.max", "max 100000\n");
  EXPECT_EQ(CoresByQuota(paths()), 0);
  Write("cg/a/b/cpu.max", "300000 100000\n");
  Write("cg/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(CoresByQuota(paths()), 1.5);
}

TEST_F(CoresTest, AQuotaOfVersion2IsRoundedUp) {
  Write("self", "0::/a/b\n");
  Write("cg/a/b/cpu.max", "150000 100000\n");
  EXPECT_EQ(UsableCores(paths(), 8), 2);
}

TEST_F(CoresTest, TheTightestGroupAboveCounts) {
  Write("self", "0::/a/b\n");
  Write("cg/a/b/cpu.max", "max 100000\n");
  Write("cg/a/cpu.max", "300000 100000\n");
  EXPECT_EQ(UsableCores(paths(), 8), 3);
}

TEST_F(CoresTest, InAContainerTheRootOfTheMountIsRead) {
  Write("self", "0::/not/visible/here\n");
  Write("cg/cpu.max", "400000 100000\n");
  EXPECT_EQ(UsableCores(paths(), 8), 4);
}

TEST_F(CoresTest, AQuotaOfVersion1IsRead) {
  Write("self", "5:cpuset:/\n4:cpu,cpuacct:/docker/1\n");
  Write("cg/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "250000\n");
  Write("cg/cpu,cpuacct/docker/1/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(UsableCores(paths(), 8), 3);
}

TEST_F(CoresTest, NoQuotaAndGarbageLimitNothing) {
  Write("self", "0::/a\nrubbish\n:\n");
  Write("cg/cpu/cpu.cfs_quota_us", "-1\n");
  Write("cg/cpu/cpu.cfs_period_us", "100000\n");
  Write("cg/a/cpu.max", "lots of it\n");
  EXPECT_EQ(UsableCores(paths(), 8), 8);
}

TEST_F(CoresTest, AQuotaNeverExceedsTheMask) {
  Write("cg/cpu.max", "6400000 100000\n");
  EXPECT_EQ(UsableCores(paths(), 4), 4);
}

TEST_F(CoresTest, GroupsWithAQuotaCountHowOftenItWasUsedUp) {
  Write("self", "0::/a/b\n4:cpu:/c\n");
  Write("cg/a/b/cpu.max", "max 100000\n");
  Write("cg/a/b/cpu.stat", "nr_throttled 1000\n");
  Write("cg/a/cpu.max", "300000 100000\n");
  Write("cg/a/cpu.stat",
        "usage_usec 50\nnr_periods 7\nnr_throttled 4\nnr_bursts 9\n");
  Write("cg/cpu/c/cpu.cfs_quota_us", "250000\n");
  Write("cg/cpu/c/cpu.cfs_period_us", "100000\n");
  Write("cg/cpu/c/cpu.stat", "nr_periods 3\nnr_throttled 2\n");
  const auto counters = QuotaCounters(paths());
  EXPECT_EQ(counters.size(), 2u);
  EXPECT_EQ(TimesThrottled(counters), 6u);
  EXPECT_EQ(UseOfQuota(counters).periods, 7u);
  EXPECT_EQ(UseOfQuota(counters).used_up, 4u);
  Write("cg/a/cpu.stat", "rubbish");
  EXPECT_EQ(TimesThrottled(counters), 2u);
  EXPECT_EQ(UseOfQuota(counters).periods, 3u);
  EXPECT_EQ(UseOfQuota({}).periods, 0u);
}

TEST(TaskLimits, AreWhatSlurmSays) {
  EXPECT_EQ(LimitsOfTask("4", "", "").cores, 4);
  EXPECT_EQ(LimitsOfTask("4", "2048", "").memory_bytes, uint64_t{2} << 30);
  EXPECT_EQ(LimitsOfTask("4", "", "1024").memory_bytes, uint64_t{4} << 30);
  EXPECT_EQ(LimitsOfTask("", "", "1024").memory_bytes, uint64_t{1} << 30);
}

TEST(TaskLimits, WhatIsNoNumberLimitsNothing) {
  const TaskLimits none;
  for (const char* text : {"", "0", "-3", "many", "4x", "99999999999999999999"})
    for (const TaskLimits& limits :
         {LimitsOfTask(text, "", ""), LimitsOfTask("", text, ""),
          LimitsOfTask("", "", text)}) {
      EXPECT_EQ(limits.cores, none.cores) << text;
      EXPECT_EQ(limits.memory_bytes, none.memory_bytes) << text;
    }
}

TEST_F(CoresTest, MemoryIsTheSmallestLimit) {
  Write("meminfo", "MemTotal:  1024 kB\nMemFree: 1 kB\n");
  EXPECT_EQ(UsableMemory(paths()), 1u << 20);
  Write("self", "0::/a\n");
  Write("cg/a/memory.max", "max\n");
  EXPECT_EQ(UsableMemory(paths()), 1u << 20);
  Write("cg/memory.max", "65536\n");
  EXPECT_EQ(UsableMemory(paths()), 65536u);
}

TEST_F(CoresTest, ThisProcessIsResident) { EXPECT_GT(ResidentBytes(), 0u); }

}  // namespace
}  // namespace leat::rpc
