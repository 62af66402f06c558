// SPDX-License-Identifier: Apache-2.0
//
// What this process may use of its machine: cores and memory, as its control
// group (version 2, or 1) and its affinity mask allow.
#pragma once

#include <cstdint>
#include <string>

namespace leat::worker {

// Where the kernel shows it; tests point elsewhere.
struct MachinePaths {
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string self_cgroup = "/proc/self/cgroup";
  std::string meminfo = "/proc/meminfo";
};

// The quota of this process's group and of all above it, rounded up; never
// more than `affinity_cores`, at least 1. A file that is absent or malformed
// limits nothing.
int UsableCores(const MachinePaths& paths, int affinity_cores);
// The same, with the affinity mask of the calling thread.
int UsableCores();

// Bytes of memory: the smallest limit of the group and those above it, or the
// machine's.
uint64_t UsableMemory(const MachinePaths& paths);
uint64_t UsableMemory();

// Resident bytes of this process; 0 if unknown.
uint64_t ResidentBytes();

}  // namespace leat::worker
