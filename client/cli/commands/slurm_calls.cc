// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/slurm_calls.h"

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "fmt/ranges.h"

namespace leat::cli {
namespace {

// A busy controller answers within this time.
constexpr absl::Duration kCommandTime = absl::Seconds(60);
// The exit code of `env` if the program is not there.
constexpr int kNoProgram = 127;

// Returns "squeue" for "env SLURM_BITSTR_LEN=0 squeue ...".
const std::string& ProgramOf(const std::vector<std::string>& command) {
  const auto found =
      std::find_if(command.begin(), command.end(), [](const auto& word) {
        return word != "env" && word.find('=') == word.npos;
      });
  return found == command.end() ? command.front() : *found;
}

}  // namespace

std::string FirstLine(std::string_view text) {
  return std::string(text.substr(0, std::min(text.find('\n'), text.size())));
}

absl::StatusOr<std::string> CallSlurm(const Session& session,
                                      const std::vector<std::string>& command) {
  absl::StatusOr<Ended> ended =
      session.environment().spawn(command, kCommandTime, nullptr);
  if (absl::IsNotFound(ended.status()) ||
      (ended.ok() && ended->exit_code == kNoProgram))
    return FailedPrecondition(
        "there is no program {} on the PATH: run leat slurm where Slurm's "
        "commands are, as on the cluster's login node",
        ProgramOf(command));
  RETURN_IF_ERROR(ended.status());
  if (ended->exit_code == 0) return std::move(ended->out);
  const std::string why =
      FirstLine(ended->err.empty() ? ended->out : ended->err);
  return Unavailable("Slurm refuses \"{}\" (exit {}): {}",
                     fmt::format("{}", fmt::join(command, " ")),
                     ended->exit_code, why.empty() ? "it says nothing" : why);
}

void CancelTasks(const Session& session, std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"scancel", "--quiet"});
  if (const auto done = CallSlurm(session, flags); !done.ok())
    session.Say(Message(done.status()));
}

absl::StatusOr<std::vector<SlurmTasks>> SlurmQueue(const Session& session,
                                                   std::string_view job_name) {
  ASSIGN_OR_RETURN(const std::string text,
                   CallSlurm(session, QueueCommand(job_name)));
  return ParseQueue(text);
}

}  // namespace leat::cli
