// SPDX-License-Identifier: Apache-2.0
//
// StopSignal: makes pauses between tries that end when the process does.
// Thread-safe.
#pragma once

#include "core/clock.h"
#include "core/mutex.h"

namespace leat::worker {

class StopSignal {
 public:
  // Ends all pauses, and makes later ones end at once.
  void Stop() {
    MutexLock lock(&mu_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  // Returns false if it was stopped before the time was over.
  bool Pause(Duration duration) {
    const MonotonicTime until = Clock::Real().Now() + duration;
    MutexLock lock(&mu_);
    while (!stopped_ && changed_.WaitUntil(&mu_, until)) {
    }
    return !stopped_;
  }
  bool stopped() const {
    MutexLock lock(&mu_);
    return stopped_;
  }

 private:
  mutable Mutex mu_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace leat::worker
