// SPDX-License-Identifier: Apache-2.0
//
// StorageClock: tells the time and waits; in tests time passes at once.
#pragma once

#include "core/clock.h"
#include "core/mutex.h"

namespace leat::worker {

class StorageClock : public Clock {
 public:
  // As CondVar::WaitUntil. REQUIRES: the caller holds `mu`.
  virtual void WaitUntil(Mutex* mu, CondVar* changed, MonotonicTime deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) = 0;
  // Returns the machine's clock, which is never destroyed.
  static StorageClock& Real();
};

}  // namespace leat::worker
