// SPDX-License-Identifier: Apache-2.0
#include "rpc/process/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

namespace leat::rpc {
namespace {

constexpr int kMaxDepth = 64;  // of nested control groups

std::optional<std::string> FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<int64_t> ParseInt(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

// Returns the group's path in the hierarchy of `controller`; for version 2 the
// controller is "". Lines are "ID:controllers:path".
std::string GroupOf(const MachinePaths& paths, std::string_view controller) {
  std::ifstream file(paths.self_cgroup);
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second =
        first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::istringstream names(line.substr(first + 1, second - first - 1));
    if (controller.empty() && second == first + 1)
      return line.substr(second + 1);
    for (std::string name; std::getline(names, name, ',');)
      if (name == controller) return line.substr(second + 1);
  }
  return "/";
}

// Returns the directories of a group and its ancestors. In a container the path
// may be the host's and not exist: the root is always included.
std::vector<std::string> GroupAndAbove(const std::string& root,
                                       std::string group) {
  std::vector<std::string> directories;
  for (int i = 0; i < kMaxDepth && group.size() > 1; ++i) {
    directories.push_back(root + group);
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
  directories.push_back(root);
  return directories;
}

// Returns the quota in cores; nullopt: none.
std::optional<double> QuotaV2(const std::string& directory) {
  const std::optional<std::string> line = FirstLine(directory + "/cpu.max");
  if (!line) return std::nullopt;
  const size_t space = line->find(' ');
  if (space == std::string::npos) return std::nullopt;
  const auto quota = ParseInt(std::string_view(*line).substr(0, space));
  const auto period = ParseInt(std::string_view(*line).substr(space + 1));
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<double> QuotaV1(const std::string& directory) {
  const auto quota_line = FirstLine(directory + "/cpu.cfs_quota_us");
  const auto period_line = FirstLine(directory + "/cpu.cfs_period_us");
  if (!quota_line || !period_line) return std::nullopt;
  const auto quota = ParseInt(*quota_line), period = ParseInt(*period_line);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

QuotaUse UseIn(const std::string& path) {
  QuotaUse use;
  std::ifstream file(path);
  std::string name;
  for (uint64_t value = 0; file >> name >> value;) {
    if (name == "nr_periods") use.periods = value;
    if (name == "nr_throttled") use.used_up = value;
  }
  return use;
}

}  // namespace

double CoresByQuota(const MachinePaths& paths) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double cores = kNone;
  for (const std::string& directory :
       GroupAndAbove(paths.cgroup_root, GroupOf(paths, "")))
    if (const auto quota = QuotaV2(directory)) cores = std::min(cores, *quota);
  for (const char* mount : {"/cpu", "/cpu,cpuacct"})
    for (const std::string& directory :
         GroupAndAbove(paths.cgroup_root + mount, GroupOf(paths, "cpu")))
      if (const auto quota = QuotaV1(directory))
        cores = std::min(cores, *quota);
  return cores == kNone ? 0 : cores;
}

int UsableCores(const MachinePaths& paths, int affinity_cores) {
  const int all = std::max(affinity_cores, 1);
  const double quota = CoresByQuota(paths);
  if (quota <= 0 || quota >= all) return all;
  return std::max(1, static_cast<int>(std::ceil(quota)));
}

std::vector<std::string> QuotaCounters(const MachinePaths& paths) {
  std::vector<std::string> counters;
  for (const std::string& directory :
       GroupAndAbove(paths.cgroup_root, GroupOf(paths, "")))
    if (QuotaV2(directory)) counters.push_back(directory + "/cpu.stat");
  for (const char* mount : {"/cpu", "/cpu,cpuacct"})
    for (const std::string& directory :
         GroupAndAbove(paths.cgroup_root + mount, GroupOf(paths, "cpu")))
      if (QuotaV1(directory)) counters.push_back(directory + "/cpu.stat");
  return counters;
}

uint64_t TimesThrottled(const std::vector<std::string>& counters) {
  uint64_t times = 0;
  for (const std::string& path : counters) times += UseIn(path).used_up;
  return times;
}

QuotaUse UseOfQuota(const std::vector<std::string>& counters) {
  QuotaUse most;
  for (const std::string& path : counters) {
    const QuotaUse use = UseIn(path);
    if (use.used_up >= most.used_up) most = use;
  }
  return most;
}

int UsableCores() {
  int affinity = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) affinity = CPU_COUNT(&set);
  return UsableCores(MachinePaths{}, affinity);
}

uint64_t UsableMemory(const MachinePaths& paths) {
  uint64_t bytes = std::numeric_limits<uint64_t>::max();
  std::ifstream file(paths.meminfo);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t kib = 0;
    if (words >> name >> kib && name == "MemTotal:") bytes = kib << 10;
  }
  const auto limit = [&](const std::string& path) {
    const std::optional<std::string> line = FirstLine(path);
    const auto value = line ? ParseInt(*line) : std::nullopt;
    if (value && *value > 0)
      bytes = std::min(bytes, static_cast<uint64_t>(*value));
  };
  for (const std::string& directory :
       GroupAndAbove(paths.cgroup_root, GroupOf(paths, "")))
    limit(directory + "/memory.max");
  for (const std::string& directory :
       GroupAndAbove(paths.cgroup_root + "/memory", GroupOf(paths, "memory")))
    limit(directory + "/memory.limit_in_bytes");
  return bytes == std::numeric_limits<uint64_t>::max() ? 1ull << 30 : bytes;
}

uint64_t UsableMemory() { return UsableMemory(MachinePaths{}); }

TaskLimits LimitsOfTask(std::string_view cpus, std::string_view memory,
                        std::string_view memory_per_cpu) {
  constexpr int64_t kMostMiB = int64_t{1} << 40;
  constexpr int64_t kMostCores = 1 << 20;
  const auto positive = [](std::string_view text, int64_t most) {
    const std::optional<int64_t> value = ParseInt(text);
    return value && *value > 0 && *value <= most ? *value : 0;
  };
  TaskLimits limits;
  const int64_t cores = positive(cpus, kMostCores);
  if (cores > 0) limits.cores = static_cast<int>(cores);
  int64_t mib = positive(memory, kMostMiB);
  if (mib == 0)
    mib = positive(memory_per_cpu, kMostMiB / kMostCores) *
          std::max<int64_t>(cores, 1);
  if (mib > 0) limits.memory_bytes = static_cast<uint64_t>(mib) << 20;
  return limits;
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

uint64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  if (!(file >> total >> resident)) return 0;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace leat::rpc
