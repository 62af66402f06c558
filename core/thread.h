// SPDX-License-Identifier: Apache-2.0
//
// StartThread starts a thread, and returns a Status where std::thread would
// throw: a process may reach its limit of threads (RLIMIT_NPROC, a cgroup's
// pids.max, memory).
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"

namespace leat {

// Starts `body` on a new thread, and stores it in `*thread`. The thread is
// named `name`; the system shows the first 15 characters. kResourceExhausted:
// the system cannot create a thread (the message names it, and the limits that
// apply); `*thread` is unchanged, and `body` is not called.
// REQUIRES: `*thread` is not joinable.
absl::Status StartThread(const std::string& name, std::function<void()> body,
                         std::thread* thread);

}  // namespace leat
