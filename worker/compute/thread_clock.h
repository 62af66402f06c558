// SPDX-License-Identifier: Apache-2.0
//
// ThreadClock: the processor time of the calling thread. It measures how long a
// decode takes, so that other work on the machine does not make it look slow.
// Times of different threads cannot be compared.
#pragma once

#include <ctime>

#include "core/clock.h"

namespace leat::worker {

class ThreadClock final : public Clock {
 public:
  MonotonicTime Now() const override {
    timespec now = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return MonotonicTime(std::chrono::seconds(now.tv_sec) +
                         std::chrono::nanoseconds(now.tv_nsec));
  }
  WallTime WallNow() const override { return Clock::Real().WallNow(); }

  // Returns a clock that is never destroyed.
  static const Clock& Real() {
    static const ThreadClock* const clock = new ThreadClock;
    return *clock;
  }
};

}  // namespace leat::worker
