// SPDX-License-Identifier: Apache-2.0
//
// StartThread: a thread, or a status where std::thread throws: a process may
// be at its limit of threads (RLIMIT_NPROC, a cgroup's pids.max, memory).
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"

namespace leat {

// Starts `body` on a new thread, which it puts into `*thread`. The thread is
// called `name`, of which the system shows the first 15 characters.
// kResourceExhausted: the system gives no thread (names it, and what bounds
// them); `*thread` is as it was, and `body` is not called.
// REQUIRES: `*thread` is not joinable.
absl::Status StartThread(const std::string& name, std::function<void()> body,
                         std::thread* thread);

}  // namespace leat
