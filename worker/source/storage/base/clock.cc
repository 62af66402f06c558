// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/base/clock.h"

namespace leat::worker {
namespace {

class RealStorageClock : public StorageClock {
 public:
  MonotonicTime Now() const override { return Clock::Real().Now(); }
  WallTime WallNow() const override { return Clock::Real().WallNow(); }
  void WaitUntil(Mutex* mu, CondVar* changed, MonotonicTime deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    changed->WaitUntil(mu, deadline);
  }
};

}  // namespace

StorageClock& StorageClock::Real() {
  static RealStorageClock clock;
  return clock;
}

}  // namespace leat::worker
