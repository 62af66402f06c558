// SPDX-License-Identifier: Apache-2.0
#include "client/cli/clusters/slurm_pool.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "core/status.h"

namespace leat::cli {
namespace {

constexpr size_t kFields = 5;
constexpr size_t kSignalsAtOnce = 100;
// Another array is submitted when fewer than this part of an array's tasks
// wait.
constexpr uint64_t kSpareOf = 5;

std::vector<std::string_view> Split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool ParseWhole(std::string_view text, uint64_t* value) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

bool IsTask(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, '_');
  uint64_t number = 0;
  return parts.size() == 2 && ParseWhole(parts[0], &number) &&
         ParseWhole(parts[1], &number);
}

// Parses "1,3,7-999%2": tasks and throttle. Returns false for anything else.
bool ParseIndexes(std::string_view text, SlurmTasks* tasks) {
  const size_t percent = text.find('%');
  if (percent != std::string_view::npos &&
      !ParseWhole(text.substr(percent + 1), &tasks->throttle))
    return false;
  tasks->index = text.substr(0, percent);
  for (const std::string_view part : Split(tasks->index, ',')) {
    const size_t dash = part.find('-');
    uint64_t first = 0, last = 0;
    if (!ParseWhole(part.substr(0, dash), &first)) return false;
    last = first;
    if (dash != std::string_view::npos &&
        (!ParseWhole(part.substr(dash + 1), &last) || last < first))
      return false;
    tasks->count += last - first + 1;
  }
  return true;
}

struct Array {
  uint64_t running = 0, pending = 0, throttle = 0;
  bool held = false;
};

std::string Decimal(uint64_t value) { return fmt::format("{}", value); }

// Distributes the desired tasks over the arrays, the oldest first.
void PlanArrays(const std::map<uint64_t, Array>& arrays, uint64_t desired,
                uint64_t array_size, SlurmPlan* plan) {
  uint64_t left = desired, spare = 0;
  for (const auto& [job, array] : arrays) {
    const uint64_t take = std::min(left, array.running + array.pending);
    left -= take;
    if (array.pending == 0) continue;
    if (take == 0 && !array.held) {
      // A throttle of 0 would mean no throttle.
      plan->cancels.push_back({"--state=PENDING", Decimal(job)});
      continue;
    }
    spare += array.pending;
    if (take == 0) continue;
    if (array.throttle != take)
      plan->commands.push_back({"scontrol", "update", "JobId=" + Decimal(job),
                                "ArrayTaskThrottle=" + Decimal(take)});
    if (array.held)
      plan->commands.push_back({"scontrol", "release", Decimal(job)});
  }
  plan->submit = desired > 0 && (left > 0 || spare * kSpareOf < array_size);
}

}  // namespace

absl::Status CheckSlurmPool(std::string_view pool) {
  if (!pool.ends_with("-coordinator")) return absl::OkStatus();
  return InvalidArgument(
      "pool \"{}\": its workers' jobs would be named as another pool's "
      "coordinator: want a name that does not end in -coordinator",
      pool);
}

std::string SlurmJobName(std::string_view pool) {
  return fmt::format("leat-{}", pool);
}

std::string CoordinatorJobName(std::string_view pool) {
  return fmt::format("leat-{}-coordinator", pool);
}

// The list of indexes is not cut; all states except final ones are shown.
std::vector<std::string> QueueCommand(std::string_view job_name) {
  return {"env",
          "SLURM_BITSTR_LEN=0",
          "squeue",
          "--me",
          "--noheader",
          fmt::format("--name={}", job_name),
          "--format=%F|%K|%t|%r|%N"};
}

absl::StatusOr<std::vector<SlurmTasks>> ParseQueue(std::string_view text) {
  std::vector<SlurmTasks> queue;
  for (std::string_view line : Split(text, '\n')) {
    while (line.ends_with(' ') || line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::vector<std::string_view> fields = Split(line, '|');
    SlurmTasks tasks;
    const bool no_array = fields.size() == kFields && fields[1] == "N/A";
    if (fields.size() != kFields || !ParseWhole(fields[0], &tasks.job) ||
        (!no_array && !ParseIndexes(fields[1], &tasks)))
      return Internal(
          "squeue printed \"{}\": want JOB|INDEXES|STATE|REASON|NODE", line);
    if (no_array) tasks.count = 1;
    tasks.word = fields[2];
    if (tasks.word == "PD") tasks.state = SlurmTasks::State::kPending;
    if (tasks.word == "R" || tasks.word == "CF" || tasks.word == "S")
      tasks.state = SlurmTasks::State::kRunning;
    tasks.reason = fields[3];
    tasks.held = tasks.reason.starts_with("JobHeld");
    tasks.node = fields[4];
    queue.push_back(std::move(tasks));
  }
  return queue;
}

std::optional<std::string> TaskOfWorker(std::string_view pool,
                                        std::string_view worker) {
  if (worker.size() <= pool.size() || !worker.starts_with(pool) ||
      worker[pool.size()] != '.')
    return std::nullopt;
  std::string_view task = worker.substr(pool.size() + 1);
  task = task.substr(0, task.find(".r"));
  if (!IsTask(task)) return std::nullopt;
  return std::string(task);
}

SlurmPlan PlanSlurm(const SlurmWish& wish, const std::vector<SlurmTasks>& queue,
                    uint64_t array_size) {
  std::map<uint64_t, Array> arrays;
  std::set<std::string> running;
  for (const SlurmTasks& tasks : queue) {
    if (tasks.state == SlurmTasks::State::kOther) continue;
    Array& array = arrays[tasks.job];
    if (tasks.state == SlurmTasks::State::kRunning) {
      array.running += tasks.count;
      running.insert(fmt::format("{}_{}", tasks.job, tasks.index));
      continue;
    }
    array.pending += tasks.count;
    array.throttle = std::max(array.throttle, tasks.throttle);
    array.held |= tasks.held;
  }
  SlurmPlan plan;
  PlanArrays(arrays, wish.desired, array_size, &plan);
  std::vector<std::string> ending;
  for (const std::string& worker : wish.drain)
    if (const auto task = TaskOfWorker(wish.pool, worker);
        task && running.contains(*task))
      ending.push_back(*task);
  for (size_t i = 0; i < ending.size(); i += kSignalsAtOnce) {
    std::vector<std::string> flags = {"--signal=TERM", "--batch"};
    flags.insert(flags.end(), ending.begin() + static_cast<int64_t>(i),
                 ending.begin() + static_cast<int64_t>(std::min(
                                      ending.size(), i + kSignalsAtOnce)));
    plan.cancels.push_back(std::move(flags));
  }
  return plan;
}

}  // namespace leat::cli
