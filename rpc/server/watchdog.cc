// SPDX-License-Identifier: Apache-2.0
#include "rpc/server/watchdog.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"

namespace leat::rpc {
namespace {

// A thread that wakes later than this was not just waiting for a core.
Duration Slack(const WatchdogOptions& options) {
  return std::max<Duration>(options.interval / 2, std::chrono::seconds(1));
}

}  // namespace

bool Deafness::Add(const Question& question) {
  const Duration slack = Slack(options_);
  const bool was_stopped =
      question.started > question.due + slack ||
      question.ended > question.started + options_.interval + slack;
  if (was_stopped || question.answer != Answer::kMissed)
    misses_ = 0;
  else
    ++misses_;
  return misses_ >= options_.misses;
}

Watchdog::Watchdog(const WatchdogOptions& options, Ask ask,
                   std::function<void()> on_deaf)
    : options_(options), ask_(std::move(ask)), on_deaf_(std::move(on_deaf)) {}

absl::StatusOr<std::unique_ptr<Watchdog>> Watchdog::Start(
    const WatchdogOptions& options, Ask ask, std::function<void()> on_deaf) {
  std::unique_ptr<Watchdog> watchdog(
      new Watchdog(options, std::move(ask), std::move(on_deaf)));
  RETURN_IF_ERROR(StartThread(
      "leat-watchdog", [w = watchdog.get()] { w->Loop(); },
      &watchdog->thread_));
  return watchdog;
}

Watchdog::~Watchdog() {
  {
    MutexLock lock(&mu_);
    stop_ = true;
    stopping_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

bool Watchdog::AwaitUntil(MonotonicTime due) {
  MutexLock lock(&mu_);
  while (!stop_ && stopping_.WaitUntil(&mu_, due)) {
  }
  return !stop_;
}

void Watchdog::Loop() {
  Deafness deafness(options_);
  MonotonicTime due = Clock::Real().Now() + options_.interval;
  while (AwaitUntil(due)) {
    const MonotonicTime started = Clock::Real().Now();
    Deafness::Question question = {.due = due, .started = started};
    question.answer = ask_(started + options_.interval);
    question.ended = Clock::Real().Now();
    const bool is_deaf = deafness.Add(question);
    missed_ = deafness.misses();
    if (is_deaf) return on_deaf_();
    if (deafness.misses() > 0)
      LOG_WARN("watchdog.missed in_a_row={} of={}", deafness.misses(),
               options_.misses);
    else if (options_.on_alive)
      options_.on_alive();
    due = std::max(started + options_.interval, question.ended);
  }
}

}  // namespace leat::rpc
