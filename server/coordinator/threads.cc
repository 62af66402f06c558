// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/threads.h"

#include <algorithm>

#include "core/status.h"
#include "core/thread.h"

namespace leat::server {
namespace {

// Findings appear and disappear as time passes, so they are compared regularly.
constexpr Duration kCompareFindings = std::chrono::seconds(2);

}  // namespace

absl::Status Driver::Start(Coordinator* coordinator) {
  RETURN_IF_ERROR(StartThread(
      "leat-writer",
      [this, coordinator] {
        Loop([this, coordinator] { return RunTransaction(coordinator); });
      },
      &writer_));
  RETURN_IF_ERROR(StartThread(
      "leat-tables",
      [this, coordinator] {
        Loop([coordinator] { return coordinator->RunTables(); });
      },
      &builder_));
  RETURN_IF_ERROR(StartThread(
      "leat-wakes",
      [this, coordinator] {
        Loop([coordinator] { return coordinator->RunWakes(); });
      },
      &waker_));
  return StartThread(
      "leat-ticker", [this, coordinator] { TickLoop(coordinator); }, &ticker_);
}

bool Driver::RunTransaction(Coordinator* coordinator) {
  const bool wrote = coordinator->RunTransaction(Now::Of(*clock_));
  if (!wrote || !on_failed_) return wrote;
  if (const absl::Status failure = coordinator->StoreFailure(); !failure.ok())
    std::exchange(on_failed_, nullptr)(failure);
  return wrote;
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
  MonotonicTime compare_at = clock_->Now();
  while (true) {
    coordinator->Tick(Now::Of(*clock_));
    if (const Now now = Now::Of(*clock_); now.mono >= compare_at) {
      coordinator->CompareFindings(now);
      compare_at = now.mono + kCompareFindings;
    }
    const MonotonicTime deadline =
        std::min(coordinator->NextDeadline(), compare_at);
    MutexLock lock(&mu_);
    while (!stopped_ && wakes_ == seen) {
      if (!woken_.WaitUntil(&mu_, deadline)) break;
    }
    if (stopped_) return;
    seen = wakes_;
  }
}

}  // namespace leat::server
