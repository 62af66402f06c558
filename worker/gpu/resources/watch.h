// SPDX-License-Identifier: Apache-2.0
//
// GpuWatch: detects a GPU that hangs.
//
// Data-centre GPUs have no watchdog: threads would wait for ever for an engine
// that hangs on a damaged file, or for a kernel that does not end, while the
// worker reports to the coordinator that it is well. So each thread that calls
// the device, or waits for it, holds a Turn meanwhile; and a separate thread
// checks whether a turn takes longer than kLeast plus kTimesMean times the mean
// of all earlier turns.
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

  // `clock` outlives the watch. `on_stuck` is called once, on the thread that
  // is in Run, with a text that says what has not ended.
  GpuWatch(const Clock* clock, std::function<void(const std::string&)> on_stuck)
      : clock_(*clock), on_stuck_(std::move(on_stuck)) {}

  // A call of the device, or a wait for it, for the lifetime of this object.
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

  // Watches until Stop, or until a turn is stuck.
  void Run();
  void Stop();

 private:
  // Returns a text about the stuck turn. Empty: no turn is stuck.
  std::string Stuck() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock& clock_;
  const std::function<void(const std::string&)> on_stuck_;
  Mutex mu_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool asleep_ ABSL_GUARDED_BY(mu_) = false;  // until a turn begins
  std::list<const Turn*> open_ ABSL_GUARDED_BY(mu_);
  Duration all_ ABSL_GUARDED_BY(mu_){0};  // total time of all turns
  int64_t turns_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace leat::worker
