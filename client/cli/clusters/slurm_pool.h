// SPDX-License-Identifier: Apache-2.0
//
// A pool of workers as job arrays of Slurm: reads the queue, and computes the
// commands that make the pool as the coordinator wants it.
//
// A worker is a task of an array, and the array's throttle is the number of its
// tasks that run at a time. Lowering the throttle ends no task; the tasks to
// end get SIGTERM. The index of a task that has ended is used up, so a new
// array is submitted, held, when less than a fifth of the tasks are left:
//
//   array 12, 3 of 1000 running ─► throttle = desired, up to what it has left
//   array 40, held              ─► released when array 12 has too few
//
// Pure, and a function only of the queue and the wish: it may be repeated, also
// by two adapters at once, which release the same array, the oldest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat::cli {

// A line of the queue: one task, or all waiting tasks of an array.
struct SlurmTasks {
  enum class State { kPending, kRunning, kOther };
  uint64_t job = 0;
  std::string index;   // "5"; "7-999" of waiting tasks
  uint64_t count = 0;  // tasks
  State state = State::kOther;
  std::string word;  // Slurm's: "R", "PD"
  bool held = false;
  uint64_t throttle = 0;  // of waiting tasks; 0: none
  std::string reason, node;
};

// Returns the squeue command whose output ParseQueue reads.
std::vector<std::string> QueueCommand(std::string_view job_name);
// kInternal: an unreadable line (names it).
absl::StatusOr<std::vector<SlurmTasks>> ParseQueue(std::string_view text);

// Slurm knows jobs by their names alone. kInvalidArgument: the jobs of the pool's
// workers would have the name of another pool's coordinator.
absl::Status CheckSlurmPool(std::string_view pool);
// Returns "leat-cpu".
std::string SlurmJobName(std::string_view pool);
std::string CoordinatorJobName(std::string_view pool);

// Returns the task of a worker that this module started: "cpu.12_3" and
// "cpu.12_3.r1" are "12_3" of pool cpu. nullopt: it was started otherwise.
std::optional<std::string> TaskOfWorker(std::string_view pool,
                                        std::string_view worker);

struct SlurmWish {
  std::string pool;
  uint64_t desired = 0;
  std::vector<std::string> drain;  // workers
};

struct SlurmPlan {
  std::vector<std::vector<std::string>> commands;  // in order
  std::vector<std::vector<std::string>> cancels;   // afterwards: flags of
                                                   // scancel
  bool submit = false;  // submit another array, held; then plan again
};

inline constexpr uint64_t kSlurmArraySize = 1000;

SlurmPlan PlanSlurm(const SlurmWish& wish, const std::vector<SlurmTasks>& queue,
                    uint64_t array_size);

}  // namespace leat::cli
