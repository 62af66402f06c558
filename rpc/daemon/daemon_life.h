// SPDX-License-Identifier: Apache-2.0
//
// The parts that both daemons' mains share: read the command line, log, report
// readiness to the starter, and reread secrets while running.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "rpc/call/auth.h"
#include "rpc/daemon/daemon_flags.h"
#include "rpc/process/process.h"
#include "rpc/process/service_notifier.h"

namespace CLI {
class App;
}

namespace leat::rpc {

class FlagFile;

// Writes the error to stderr; returns `code`.
int Fail(std::string_view program, const absl::Status& status, int code);

// As Fail, for a start that has failed: the code is 2 if flags are wrong
// (kInvalidArgument), or else 1.
int FailStart(std::string_view program, const absl::Status& status);

// Returns the exit code of a command line that is wrong, or that only requests
// text (--help, --print-config). nullopt: `app` has parsed it, and `file` is
// applied.
std::optional<int> ParseCommandLine(CLI::App* app, FlagFile* file, int argc,
                                    char** argv);

// Sets up the log of the process, and gRPC's.
void StartLog(const std::string& program, const DaemonFlags& flags);

// Returns where to report the daemon's state: to systemd, if the environment
// names its socket. A daemon with a lifeline belongs to the process at its
// other end, and systemd manages that process, if any.
NotifySettings WhomToTell(const DaemonFlags& flags);

// Writes the address to --ready-fd, once, and closes it.
void ReportReady(const DaemonFlags& flags, const std::string& address);

// Names what differs between `before` and `now`, for the log: flags, the
// beginnings of the SHA-256 of certificates' files (as of sha256sum), ids of
// access tokens of the coordinator's list. "nothing" if nothing differs. No
// secret is in it.
std::string ChangesText(const Security& before, const Security& now);

// Serves until the daemon has to end: as StopSignals::Wait. Meanwhile SIGHUP,
// and changed files, cause certificates and the access token to be read again
// and passed to `hooks.replace`. The changes are logged. Errors in them are
// logged, and the last good ones stay. `security`: the values the daemon started
// with. `serving`: the status for systemd.
struct ReloadHooks {
  std::function<absl::Status(const Security&)> replace;
  // Called after each attempt; OK: the files as they are now are in use.
  std::function<void(const absl::Status&)> reloaded;
};
int ServeUntilStopped(StopSignals* signals, ServiceNotifier* notifier,
                      const DaemonFlags& flags, const Security& security,
                      const std::string& serving, const ReloadHooks& hooks);

}  // namespace leat::rpc
