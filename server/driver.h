// SPDX-License-Identifier: Apache-2.0
//
// Driver: the two threads that move a Coordinator: one makes its durable writes
// (and may wait for the disk), the other does what is due with time.
//
// Thread-safe.
#pragma once

#include <thread>

#include "absl/status/status.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "server/coordinator.h"

namespace leat::server {

class Driver {
 public:
  explicit Driver(const Clock* clock) : clock_(clock) {}
  ~Driver() { Stop(); }

  // kResourceExhausted: no thread can be had. REQUIRES: called once;
  // `coordinator` lives until Stop.
  absl::Status Start(Coordinator* coordinator);
  // There is something to do. Never blocks.
  void Wake();
  // Finishes the write in progress and ends both threads. Idempotent.
  void Stop();

 private:
  void WriteLoop(Coordinator* coordinator);
  void TickLoop(Coordinator* coordinator);

  const Clock* const clock_;
  Mutex mu_;
  CondVar woken_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t wakes_ ABSL_GUARDED_BY(mu_) = 0;
  std::thread writer_, ticker_;
};

}  // namespace leat::server
