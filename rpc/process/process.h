// SPDX-License-Identifier: Apache-2.0
//
// What a daemon's main does about its process: signals, the lifeline, limits;
// the last also for a client's process.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "core/clock.h"
#include "rpc/process/file_watch.h"

namespace leat::rpc {

// The exit code of a process that answers nobody, and ends so that it is
// started again (sysexits.h: EX_UNAVAILABLE).
inline constexpr int kDeafExitCode = 69;

// Raises the soft limit of descriptors to the hard one, and logs both. A
// process that cannot do so says why, and goes on.
void RaiseDescriptorLimit();

// Whether this process may have `own` threads and those that gRPC starts, which
// aborts without them. kResourceExhausted: how many there may be, and how many
// are wanted. REQUIRES: called before gRPC is used.
absl::Status CheckThreads(int own);

// Ends the process at `after` from now, with a line on stderr, if it is still
// there: the last resort where an orderly end hangs. A thread that hangs in the
// kernel (a file of a dead NFS server) cannot be ended, and any lock may wait
// for it; this needs neither a thread nor a lock. Replaces what was set before.
void EndAfter(Duration after, int exit_code);

// SIGTERM, SIGINT and SIGHUP, and what else ends a daemon. One a process.
class StopSignals {
 public:
  // What ended the wait, if it was no signal.
  static constexpr int kLifeline = 0, kAsked = -1;

  // Blocks the signals in the calling thread and all that it starts later. Make
  // it first in main.
  StopSignals();
  ~StopSignals();

  // Waits for SIGTERM, SIGINT, Ask, or, with lifeline_fd ≥ 0, for that
  // descriptor to be closed by its other end. Each SIGHUP before that is logged
  // and calls `on_reload(true)`; when `files` have changed (null: none are
  // watched) and half a second is over, it calls `on_reload(false)`. Returns
  // the signal's number, kLifeline or kAsked. From then on a further SIGTERM or
  // SIGINT ends the process at once, with exit code 128 and the signal's
  // number. REQUIRES: called once.
  int Wait(int lifeline_fd, FileWatch* files,
           const std::function<void(bool asked)>& on_reload);
  // From any thread, at any time.
  void Ask();

 private:
  int signals_ = -1, asked_ = -1;
};

}  // namespace leat::rpc
