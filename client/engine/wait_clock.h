// SPDX-License-Identifier: Apache-2.0
//
// WaitClock: how long the consumer of one iterator waits for its steps.
//
// Thread-compatible: the Engine locks. Time: callers pass `now`.
#pragma once

#include <utility>

#include "client/fetch/latency.h"
#include "core/clock.h"

namespace leat::client {

class WaitClock {
 public:
  // The consumer asks for a step; the first time is the clock's begin.
  void Asked(MonotonicTime now) {
    if (asked_ == MonotonicTime{}) asked_ = now;
  }
  // The consumer waits from now on.
  void Begin(MonotonicTime now) { since_ = now; }
  // It waits no longer, if it did. `delivered`: it has the step that it wanted;
  // else its next wait is for the same step.
  void End(MonotonicTime now, bool delivered) {
    const Duration wait = waiting(now);
    since_ = {};
    waited_ += wait;
    for_step_ += wait;
    if (delivered) steps_.Add(std::exchange(for_step_, Duration(0)));
  }

  // Since the consumer asked first.
  Duration elapsed(MonotonicTime now) const {
    return asked_ == MonotonicTime{} ? Duration(0) : now - asked_;
  }
  // All waits, with the one under way.
  Duration waited(MonotonicTime now) const { return waited_ + waiting(now); }
  // The waits for the steps that were delivered.
  const LatencyHistogram& steps() const { return steps_; }

 private:
  Duration waiting(MonotonicTime now) const {
    return since_ == MonotonicTime{} ? Duration(0) : now - since_;
  }

  MonotonicTime asked_{};
  MonotonicTime since_{};  // zero: it does not wait
  Duration waited_{0};
  Duration for_step_{0};
  LatencyHistogram steps_;
};

}  // namespace leat::client
