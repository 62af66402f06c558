// SPDX-License-Identifier: Apache-2.0
//
// StorageClock: what time it is and how to wait; tests let it pass at once.
#pragma once

#include "core/clock.h"
#include "core/mutex.h"

namespace leat::worker {

class StorageClock : public Clock {
 public:
  // As CondVar::WaitUntil. REQUIRES: the caller holds `mu`.
  virtual void WaitUntil(Mutex* mu, CondVar* changed, MonotonicTime deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) = 0;
  // The machine's clock. Lives for ever.
  static StorageClock& Real();
};

}  // namespace leat::worker
