// SPDX-License-Identifier: Apache-2.0
//
// What both daemons' mains do: read the command line, log, tell who started
// them that they serve, and read secrets again while they run.
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

// Says on stderr what is wrong; returns `code`.
int Fail(std::string_view program, const absl::Status& status, int code);

// The exit code of a command line that is wrong, or that only asks for text
// (--help, --print-config). nullopt: `app` has parsed it, and `file` is applied.
std::optional<int> ParseCommandLine(CLI::App* app, FlagFile* file, int argc,
                                    char** argv);

// Sets up the log of the process, and gRPC's.
void StartLog(const std::string& program, const DaemonFlags& flags);

// Whom to tell how the daemon is: systemd, if the environment names it. A
// daemon on a lifeline belongs to the process at its other end, and systemd
// knows that process, if any.
NotifySettings WhomToTell(const DaemonFlags& flags);

// Writes the address to --ready-fd, once, and closes it.
void ReportReady(const DaemonFlags& flags, const std::string& address);

// Serves until the daemon has to end: as StopSignals::Wait. Meanwhile SIGHUP,
// and changed files, have certificates and the access token read again, which
// `replace` takes. What is wrong with them is logged, and the last good ones
// stay. `security`: what the daemon started with. `serving`: for systemd.
int ServeUntilStopped(
    StopSignals* signals, ServiceNotifier* notifier, const DaemonFlags& flags,
    const Security& security, const std::string& serving,
    const std::function<absl::Status(const Security&)>& replace);

}  // namespace leat::rpc
