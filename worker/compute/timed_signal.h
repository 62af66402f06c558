// SPDX-License-Identifier: Apache-2.0
//
// TimedSignal: like WakeSignal, but a wait may also end at a time. Notify takes
// no lock, never blocks, and makes a system call only if a thread waits.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#include "core/clock.h"

namespace leat::worker {

class TimedSignal {
 public:
  uint32_t Prepare() const { return count_; }
  // Waits until Notify was called since Prepare, or until the deadline. May
  // return earlier.
  void Wait(uint32_t seen, MonotonicTime deadline = MonotonicTime::max()) {
    timespec timeout = {};
    const bool bounded = deadline != MonotonicTime::max();
    if (bounded) {
      const Duration left =
          std::max(Duration(0), Duration(deadline - Clock::Real().Now()));
      const auto seconds =
          std::chrono::duration_cast<std::chrono::seconds>(left);
      timeout = {.tv_sec = seconds.count(),
                 .tv_nsec = static_cast<long>((left - seconds).count())};
    }
    ++waiting_;
    syscall(SYS_futex, &count_, FUTEX_WAIT_PRIVATE, seen,
            bounded ? &timeout : nullptr, nullptr, 0);
    --waiting_;
  }
  void Notify() {
    ++count_;
    if (waiting_ > 0)
      syscall(SYS_futex, &count_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr,
              0);
  }

 private:
  std::atomic<uint32_t> count_{0}, waiting_{0};
};

}  // namespace leat::worker
