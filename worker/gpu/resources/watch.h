// SPDX-License-Identifier: Apache-2.0
//
// GpuWatch: notices a GPU that does not come back.
//
// Data-centre GPUs have no watchdog: an engine that hangs on a damaged file, or
// a kernel that does not end, is waited for without an end, while the worker
// tells the coordinator that it is well. So the threads that call the device,
// or wait for it, say so by a Turn; and a thread of its own looks whether a
// turn takes longer than kLeast and kTimesMean times what turns took so far.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <string>

#include "core/clock.h"
#include "core/mutex.h"

namespace leat::worker {

class GpuWatch {
 public:
  static constexpr Duration kLeast = std::chrono::seconds(10);
  static constexpr int kTimesMean = 1000;

  // `clock` outlives the watch. `on_stuck`: once, on the thread that is in Run,
  // with a text that says what has not ended.
  GpuWatch(const Clock* clock, std::function<void(const std::string&)> on_stuck)
      : clock_(*clock), on_stuck_(std::move(on_stuck)) {}

  // A call of the device, or a wait for it, for as long as this lives.
  class Turn {
   public:
    // `what`: "a group"; both outlive the turn.
    Turn(GpuWatch* watch, const char* what);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    friend class GpuWatch;
    GpuWatch& watch_;
    const char* const what_;
    const MonotonicTime since_;
    std::list<const Turn*>::iterator place_;
  };

  // Looks until Stop, or until a turn is stuck.
  void Run();
  void Stop();

 private:
  // Empty: no turn is stuck.
  std::string Stuck() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock& clock_;
  const std::function<void(const std::string&)> on_stuck_;
  Mutex mu_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool asleep_ ABSL_GUARDED_BY(mu_) = false;  // until a turn begins
  std::list<const Turn*> open_ ABSL_GUARDED_BY(mu_);
  Duration all_ ABSL_GUARDED_BY(mu_){0};  // that turns took
  int64_t turns_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace leat::worker
