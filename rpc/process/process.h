// SPDX-License-Identifier: Apache-2.0
//
// Manages a daemon's process in its main: signals, the lifeline, limits; the
// last also for a client's process.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "core/clock.h"
#include "rpc/process/file_watch.h"

namespace leat::rpc {

// The exit code of a process that answers no call, and ends so that it is
// restarted (sysexits.h: EX_UNAVAILABLE).
inline constexpr int kDeafExitCode = 69;

// Raises the soft limit of descriptors to the hard one, and logs both. On
// failure it logs the reason, and continues.
void RaiseDescriptorLimit();

// Checks that this process may have `own` threads and those that gRPC starts,
// which aborts without them. kResourceExhausted: the message has the possible
// and the wanted number. REQUIRES: called before gRPC is used.
absl::Status CheckThreads(int own);

// Ends the process after `after`, with a line on stderr, if it is still
// running: the last resort if an orderly end hangs. A thread that hangs in the
// kernel (a file of a dead NFS server) cannot be ended, and any lock may wait
// for it; this needs neither a thread nor a lock. Replaces the previous
// setting.
void EndAfter(Duration after, int exit_code);

// Waits for SIGTERM, SIGINT and SIGHUP, and other reasons to end a daemon. One
// per process.
class StopSignals {
 public:
  // Results of Wait that are not a signal.
  static constexpr int kLifeline = 0, kAsked = -1;

  // Blocks the signals in the calling thread and all threads that it starts
  // later. Construct it first in main.
  StopSignals();
  ~StopSignals();

  // Waits for SIGTERM, SIGINT, Ask, or, with lifeline_fd ≥ 0, for the other end
  // of that descriptor to close. Each SIGHUP before that is logged and calls
  // `on_reload(true)`; half a second after `files` have changed (nullptr: none
  // are watched), it calls `on_reload(false)`. Returns the signal's number,
  // kLifeline or kAsked. From then on a further SIGTERM or SIGINT ends the
  // process at once, with exit code 128 plus the signal's number. REQUIRES:
  // called once.
  int Wait(int lifeline_fd, FileWatch* files,
           const std::function<void(bool asked)>& on_reload);
  // Makes Wait return. May be called on any thread, at any time.
  void Ask();

 private:
  int signals_ = -1, asked_ = -1;
};

}  // namespace leat::rpc
