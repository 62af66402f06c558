// SPDX-License-Identifier: Apache-2.0
//
// What this process may use of its machine: cores and memory, as its control
// group (version 2, or 1) and its affinity mask allow. And the machine's name.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace leat::rpc {

// Where the kernel shows it; tests point elsewhere.
struct MachinePaths {
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string self_cgroup = "/proc/self/cgroup";
  std::string meminfo = "/proc/meminfo";
};

// The smallest quota of this process's group and of all above it, in cores; 0:
// there is none. A file that is absent or malformed limits nothing.
double CoresByQuota(const MachinePaths& paths);
// The same, rounded up; never more than `affinity_cores`, at least 1.
int UsableCores(const MachinePaths& paths, int affinity_cores);
// The same, with the affinity mask of the calling thread.
int UsableCores();

// The files that count how often this process's group, or one above it, has
// used up a quota of processors, and how often that was. Files that are absent
// or malformed count nothing.
std::vector<std::string> QuotaCounters(const MachinePaths& paths);
uint64_t TimesThrottled(const std::vector<std::string>& counters);

// Bytes of memory: the smallest limit of the group and those above it, or the
// machine's.
uint64_t UsableMemory(const MachinePaths& paths);
uint64_t UsableMemory();

// What an engine gave this task of its machine.
struct TaskLimits {
  int cores = std::numeric_limits<int>::max();
  uint64_t memory_bytes = std::numeric_limits<uint64_t>::max();
};
// Reads the texts of SLURM_CPUS_PER_TASK, SLURM_MEM_PER_NODE and
// SLURM_MEM_PER_CPU (MiB). What is empty or no positive number limits nothing:
// a site need not bind tasks to what they asked for, so that the mask and the
// control group alone would promise the whole node.
TaskLimits LimitsOfTask(std::string_view cpus, std::string_view memory,
                        std::string_view memory_per_cpu);

// The host's name; "unknown" if the system does not say.
std::string HostName();

// Resident bytes of this process; 0 if unknown.
uint64_t ResidentBytes();

}  // namespace leat::rpc
