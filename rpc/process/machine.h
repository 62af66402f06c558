// SPDX-License-Identifier: Apache-2.0
//
// Determines the cores and memory that this process may use, by its control
// group (version 2, or 1) and its affinity mask, and the machine's name.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace leat::rpc {

// Files of the kernel; tests use others.
struct MachinePaths {
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string self_cgroup = "/proc/self/cgroup";
  std::string meminfo = "/proc/meminfo";
};

// Returns the smallest quota of this process's group and its ancestors, in
// cores; 0: there is none. A file that is absent or malformed limits nothing.
double CoresByQuota(const MachinePaths& paths);
// Returns the quota rounded up; at most `affinity_cores`, at least 1.
int UsableCores(const MachinePaths& paths, int affinity_cores);
// The same with the affinity mask of the calling thread.
int UsableCores();

// QuotaCounters returns the files that count how often this process's group, or
// an ancestor, has used up its quota of processors; TimesThrottled returns
// their sum. Files that are absent or malformed count nothing.
std::vector<std::string> QuotaCounters(const MachinePaths& paths);
uint64_t TimesThrottled(const std::vector<std::string>& counters);

// Periods of a quota, and those of them in which it was used up.
struct QuotaUse {
  uint64_t periods = 0, used_up = 0;
};
// Returns the counts of the group that has used up its quota most often.
QuotaUse UseOfQuota(const std::vector<std::string>& counters);

// Returns the usable memory in bytes: the smallest limit of the group and its
// ancestors, or the machine's memory.
uint64_t UsableMemory(const MachinePaths& paths);
uint64_t UsableMemory();

// The part of its machine that an engine gave this task.
struct TaskLimits {
  int cores = std::numeric_limits<int>::max();
  uint64_t memory_bytes = std::numeric_limits<uint64_t>::max();
};
// Parses the texts of SLURM_CPUS_PER_TASK, SLURM_MEM_PER_NODE and
// SLURM_MEM_PER_CPU (MiB). A text that is empty or not a positive number limits
// nothing. A site need not bind tasks to what they requested, so the mask and
// the control group alone could allow the whole node.
TaskLimits LimitsOfTask(std::string_view cpus, std::string_view memory,
                        std::string_view memory_per_cpu);

// Returns the host's name; "unknown" if the system does not report it.
std::string HostName();

// Returns the resident bytes of this process; 0 if unknown.
uint64_t ResidentBytes();

}  // namespace leat::rpc
