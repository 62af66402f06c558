// SPDX-License-Identifier: Apache-2.0
//
// ServiceNotifier reports a daemon's state to systemd, by datagrams to the
// socket of NOTIFY_SOCKET (sd_notify(3)). A unit of Type=notify counts as
// started when Ready was called, and with WatchdogSec= it is restarted if Alive
// was not called for that long.
//
// Without a socket, its functions do nothing. A failure to send is logged, and
// the daemon continues: systemd notices the silence.
//
// Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/clock.h"

namespace leat::rpc {

struct NotifySettings {
  // A path, or "@" and a name of an abstract socket; empty: nothing is
  // reported.
  std::string socket;
  // Maximum time between calls of Alive; 0: they are not needed.
  Duration watchdog{0};

  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, which, if set, names
  // the process whose watchdog it is. `get` is getenv.
  static NotifySettings Read(const std::function<const char*(const char*)>& get,
                             int pid);
};

class ServiceNotifier {
 public:
  // `clock` outlives this.
  ServiceNotifier(const NotifySettings& settings, const Clock* clock);
  ~ServiceNotifier();
  ServiceNotifier(const ServiceNotifier&) = delete;
  ServiceNotifier& operator=(const ServiceNotifier&) = delete;

  // Reports that the daemon serves, or does so again after Reloading. `status`
  // is a line for "systemctl status".
  void Ready(std::string_view status);
  void Status(std::string_view status);
  // Reports that files are read again; Ready must follow.
  void Reloading();
  void Stopping(std::string_view status);
  void Alive();

  // Returns how often the daemon must check that it answers, so that Alive is
  // called in time: `asked` (0: never), or more often.
  Duration WatchdogInterval(Duration asked) const;

 private:
  void Send(const std::string& message) const;

  const NotifySettings settings_;
  const Clock* const clock_;
  int socket_ = -1;
};

}  // namespace leat::rpc
