// SPDX-License-Identifier: Apache-2.0
//
// Clock: monotonic time for decisions, wall time for people; injected, so that
// tests own it.
#pragma once

#include <chrono>

namespace leat {

using MonotonicTime = std::chrono::steady_clock::time_point;
using WallTime = std::chrono::system_clock::time_point;
using Duration = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  // Never goes back; unrelated between processes.
  virtual MonotonicTime Now() const = 0;
  // For display and records only, never for decisions.
  virtual WallTime WallNow() const = 0;
  // The machine's clock. Lives for ever.
  static const Clock& Real();
};

// A clock that moves only when told. Thread-compatible.
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
