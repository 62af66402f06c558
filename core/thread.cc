// SPDX-License-Identifier: Apache-2.0
#include "core/thread.h"

#include <pthread.h>

#include <system_error>
#include <utility>

#include "core/status.h"

namespace leat {

absl::Status StartThread(const std::string& name, std::function<void()> body,
                         std::thread* thread) {
  try {
    *thread = std::thread([shown = name.substr(0, 15), body = std::move(body)] {
      pthread_setname_np(pthread_self(), shown.c_str());
      body();
    });
  } catch (const std::system_error& error) {
    return ResourceExhausted(
        "cannot start thread {}: {} (ulimit -u, the cgroup's pids.max, or "
        "memory)",
        name, error.code().message());
  }
  return absl::OkStatus();
}

}  // namespace leat
