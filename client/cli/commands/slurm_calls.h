// SPDX-License-Identifier: Apache-2.0
//
// Calls of Slurm's own commands, which run as this user and end within a
// minute.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/clusters/slurm_pool.h"
#include "client/cli/session/session.h"

namespace leat::cli {

// Returns what the command prints. kFailedPrecondition: this machine has no
// such command. kUnavailable: Slurm refuses, or does not answer.
absl::StatusOr<std::string> CallSlurm(const Session& session,
                                      const std::vector<std::string>& command);

// Returns what is before the first line break.
std::string FirstLine(std::string_view text);

// Runs scancel. Prints its error, and goes on: a task that has ended already is
// no error, and the queue shows what is left.
void CancelTasks(const Session& session, std::vector<std::string> flags);

// Returns this user's tasks of that name. Errors: CallSlurm's; kInternal:
// squeue printed something else.
absl::StatusOr<std::vector<SlurmTasks>> SlurmQueue(const Session& session,
                                                   std::string_view job_name);

}  // namespace leat::cli
