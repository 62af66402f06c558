// SPDX-License-Identifier: Apache-2.0
//
// Clock gives monotonic time for decisions and wall time for people. It is
// injected, so that tests control it.
#pragma once

#include <chrono>

namespace leat {

using MonotonicTime = std::chrono::steady_clock::time_point;
using WallTime = std::chrono::system_clock::time_point;
using Duration = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  // Never decreases. Values of different processes are unrelated.
  virtual MonotonicTime Now() const = 0;
  // Only for display and records, never for decisions.
  virtual WallTime WallNow() const = 0;
  // Returns the machine's clock, which is never destroyed.
  static const Clock& Real();
};

// FakeClock moves only when a test advances it. Thread-compatible.
class FakeClock : public Clock {
 public:
  MonotonicTime Now() const override { return MonotonicTime(elapsed_); }
  WallTime WallNow() const override {
    return WallTime(std::chrono::duration_cast<WallTime::duration>(elapsed_));
  }
  void Advance(Duration duration) { elapsed_ += duration; }

 private:
  Duration elapsed_ = std::chrono::hours(1);
};

}  // namespace leat
