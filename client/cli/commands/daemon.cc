// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/daemon.h"

#include <unistd.h>

#include "core/status.h"
#include "fmt/ranges.h"

namespace leat::cli {

absl::StatusOr<Ended> RunDaemon(
    const Session& session, const std::string& name,
    const std::vector<std::string>& args, absl::Duration limit,
    const std::function<void(std::string_view)>& on_err) {
  const std::string& given = session.options().daemon_dir;
  const std::vector<std::string>& own = session.environment().program_dirs;
  std::vector<std::string> argv = {given.empty() ? name : given + "/" + name};
  if (given.empty()) {
    for (const std::string& folder : own) {
      const std::string beside = folder + "/" + name;
      if (access(beside.c_str(), X_OK) != 0) continue;
      argv[0] = beside;
      break;
    }
  }
  argv.insert(argv.end(), args.begin(), args.end());
  absl::StatusOr<Ended> ended =
      session.environment().spawn(argv, limit, on_err);
  if (!absl::IsNotFound(ended.status())) return ended;
  if (!given.empty())
    return NotFound("--daemon-dir {}: want a folder that holds {}", given,
                    name);
  return NotFound(
      "this command runs {}, which is neither {} on the PATH; --daemon-dir "
      "names its folder",
      name,
      own.empty() ? "beside leat nor"
                  : fmt::format("in {} nor", fmt::join(own, " nor in ")));
}

}  // namespace leat::cli
