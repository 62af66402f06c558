// SPDX-License-Identifier: Apache-2.0
//
// ServiceNotifier: tells systemd what a daemon is at, by datagrams to the
// socket of NOTIFY_SOCKET (sd_notify(3)). A unit of Type=notify is started once
// Ready was called, and with WatchdogSec= it is started again when Alive was
// not called for that long.
//
// Where nobody is to be told, its functions do nothing. What cannot be sent is
// logged, and the daemon goes on: systemd sees the silence.
//
// Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/clock.h"

namespace leat::rpc {

struct NotifySettings {
  // A path, or "@" and a name of an abstract socket; empty: nobody is told.
  std::string socket;
  // Alive is to be called more often than this; 0: it need not be called.
  Duration watchdog{0};

  // NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. The last names the process
  // whose watchdog it is, if that is not any. `get` is getenv.
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

  // The daemon serves, or does so again after Reloading. `status` is a line for
  // "systemctl status".
  void Ready(std::string_view status);
  void Status(std::string_view status);
  // Files are read again; Ready is to follow.
  void Reloading();
  void Stopping(std::string_view status);
  void Alive();

  // How often the daemon has to ask itself whether it answers, so that Alive
  // comes in time: `asked` (0: never), or more often.
  Duration WatchdogInterval(Duration asked) const;

 private:
  void Send(const std::string& message) const;

  const NotifySettings settings_;
  const Clock* const clock_;
  int socket_ = -1;
};

}  // namespace leat::rpc
