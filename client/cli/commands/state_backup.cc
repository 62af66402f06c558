// SPDX-License-Identifier: Apache-2.0
//
// `leat state backup`: copies a coordinator's state folder while it runs. Only
// the coordinator reads its state, so `leat-coordinator --backup-to` does it.
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "client/cli/base/exit_code.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/daemon.h"
#include "core/status.h"

namespace leat::cli {

absl::StatusOr<int> RunState(Session& session) {
  constexpr absl::Duration kLongest = absl::Hours(1);
  const Options& options = session.options();
  ASSIGN_OR_RETURN(
      const Ended ended,
      RunDaemon(session, "leat-coordinator",
                {"--state", options.path, "--backup-to", options.backup_to},
                kLongest, nullptr));
  std::string text = ended.exit_code == 0 ? ended.out : ended.err;
  while (text.ends_with('\n')) text.pop_back();
  if (ended.exit_code != 0)
    return FailedPrecondition(
        "{}", text.empty() ? fmt::format("leat-coordinator ended with {}",
                                         ended.exit_code)
                           : text);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (const std::string& line : lines) session.Say(line);
  return kGood;
}

}  // namespace leat::cli
