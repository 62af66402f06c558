// SPDX-License-Identifier: Apache-2.0
//
// WaitClock measures how long the consumer of one iterator waits for its steps.
//
// Thread-compatible: the Engine locks. Time: callers pass `now`.
#pragma once

#include <utility>

#include "client/fetch/latency.h"
#include "core/clock.h"

namespace leat::client {

class WaitClock {
 public:
  // Reports a request for a step; the first one starts the clock.
  void Asked(MonotonicTime now) {
    if (asked_ == MonotonicTime{}) asked_ = now;
  }
  // Reports that the consumer waits from now on.
  void Begin(MonotonicTime now) { since_ = now; }
  // Reports that it waits no longer, if it did. `delivered`: it has its step;
  // otherwise its next wait is for the same step.
  void End(MonotonicTime now, bool delivered) {
    const Duration wait = waiting(now);
    since_ = {};
    waited_ += wait;
    for_step_ += wait;
    if (delivered) steps_.Add(std::exchange(for_step_, Duration(0)));
  }

  // Returns the time since the first request.
  Duration elapsed(MonotonicTime now) const {
    return asked_ == MonotonicTime{} ? Duration(0) : now - asked_;
  }
  // Returns all waits, including the current one.
  Duration waited(MonotonicTime now) const { return waited_ + waiting(now); }
  // Returns the waits for delivered steps.
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
