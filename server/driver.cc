// SPDX-License-Identifier: Apache-2.0
#include "server/driver.h"

namespace leat::server {

void Driver::Start(Coordinator* coordinator) {
  writer_ = std::thread([this, coordinator] {
    Loop([this, coordinator] {
      return coordinator->RunWrite(Now::Of(*clock_));
    });
  });
  builder_ = std::thread([this, coordinator] {
    Loop([coordinator] { return coordinator->RunTables(); });
  });
  waker_ = std::thread([this, coordinator] {
    Loop([coordinator] { return coordinator->RunWakes(); });
  });
  ticker_ = std::thread([this, coordinator] { TickLoop(coordinator); });
}

void Driver::Wake() {
  MutexLock lock(&mu_);
  ++wakes_;
  woken_.NotifyAll();
}

void Driver::Stop() {
  {
    MutexLock lock(&mu_);
    stopped_ = true;
    woken_.NotifyAll();
  }
  if (writer_.joinable()) writer_.join();
  if (ticker_.joinable()) ticker_.join();
  if (builder_.joinable()) builder_.join();
  if (waker_.joinable()) waker_.join();
}

void Driver::Loop(const std::function<bool()>& work) {
  uint64_t seen = 0;
  while (true) {
    {
      MutexLock lock(&mu_);
      while (!stopped_ && wakes_ == seen) woken_.Wait(&mu_);
      if (stopped_) return;
      seen = wakes_;
    }
    while (work()) {
    }
  }
}

void Driver::TickLoop(Coordinator* coordinator) {
  uint64_t seen = 0;
  while (true) {
    coordinator->Tick(Now::Of(*clock_));
    const MonotonicTime deadline = coordinator->NextDeadline();
    MutexLock lock(&mu_);
    while (!stopped_ && wakes_ == seen) {
      if (deadline == MonotonicTime::max())
        woken_.Wait(&mu_);
      else if (!woken_.WaitUntil(&mu_, deadline))
        break;
    }
    if (stopped_) return;
    seen = wakes_;
  }
}

}  // namespace leat::server
