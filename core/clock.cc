// SPDX-License-Identifier: Apache-2.0
#include "core/clock.h"

namespace leat {
namespace {

class RealClock : public Clock {
 public:
  MonotonicTime Now() const override {
    return std::chrono::steady_clock::now();
  }
  WallTime WallNow() const override { return std::chrono::system_clock::now(); }
};

}  // namespace

const Clock& Clock::Real() {
  static const RealClock* const clock = new RealClock;
  return *clock;
}

}  // namespace leat
