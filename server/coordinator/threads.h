// SPDX-License-Identifier: Apache-2.0
//
// Driver runs the four threads of a Coordinator: one runs its transactions
// (and may wait for the disk), one does timed work and compares the findings,
// one computes tables, and one wakes sessions.
//
// Thread-safe.
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "server/coordinator/coordinator.h"

namespace leat::server {

class Driver {
 public:
  // `on_failed` is called once, on the writing thread, when the store has
  // failed permanently; may be null.
  explicit Driver(const Clock* clock,
                  std::function<void(const absl::Status&)> on_failed = nullptr)
      : clock_(clock), on_failed_(std::move(on_failed)) {}
  ~Driver() { Stop(); }

  // kResourceExhausted: a thread cannot be started. REQUIRES: called once;
  // `coordinator` lives until Stop.
  absl::Status Start(Coordinator* coordinator);
  // Signals that there is work. Never blocks.
  void Wake();
  // Finishes the transaction in progress and ends the threads. Idempotent.
  void Stop();

 private:
  // Runs `work` until it returns false, each time that there is work.
  void Loop(const std::function<bool()>& work);
  void TickLoop(Coordinator* coordinator);
  bool RunTransaction(Coordinator* coordinator);

  const Clock* const clock_;
  std::function<void(const absl::Status&)> on_failed_;  // null: was called
  Mutex mu_;
  CondVar woken_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t wakes_ ABSL_GUARDED_BY(mu_) = 0;
  std::thread writer_, ticker_, builder_, waker_;
};

}  // namespace leat::server
