// SPDX-License-Identifier: Apache-2.0
//
// Verdicts on what limits a job: the statistics of its consumers and of the
// workers, judged by core/observe/bottleneck.h.
//
//   consumers of the job ─► the one that waits most, and its slots
//   workers, slot by slot ─► means over these slots: of the one that is waited
//                            for, and of the others
#include <algorithm>
#include <utility>

#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/parts.h"
#include "server/coordinator/snapshots.h"

namespace leat::server {
namespace {

// Workers whose statistics are read under one lock.
constexpr size_t kStatisticsAtOnce = 1000;

Bottleneck NotYet(std::string summary) {
  return {.limit = Limit::kUnknown,
          .summary = std::move(summary),
          .advice =
              "ask again while it trains; until then, leat top workers "
              "shows what threads do"};
}

// Returns the consumer that waits most, among those with enough data, or among
// all if there is none. Sets `consumers` and `seen` of the view.
std::optional<ConsumerPast> SlowestOf(const Statistics& statistics,
                                      const std::vector<std::string>& consumers,
                                      MonotonicTime since, Now now,
                                      BottleneckView* view) {
  std::optional<ConsumerPast> slowest;
  view->consumers = 0;
  view->seen = Duration(0);
  for (const std::string& name : consumers) {
    std::optional<ConsumerPast> past = statistics.PastOf(name, since);
    if (!past) continue;
    ++view->consumers;
    view->seen = std::max(view->seen, now.mono - past->begin);
    if (!slowest || past->enough > slowest->enough ||
        (past->enough == slowest->enough &&
         past->mean.waiting > slowest->mean.waiting))
      slowest = *std::move(past);
  }
  return slowest;
}

}  // namespace

WorkerSlots Coordinator::WorkersSince(MonotonicTime since) const {
  WorkerSlots slots(since);
  std::string after;
  while (true) {
    std::vector<std::string> names;
    bool more = false;
    {
      MutexLock lock(&mu_);
      const auto& workers = parts_->membership.workers();
      auto it = workers.upper_bound(after);
      for (size_t n = 0; it != workers.end() && n < kStatisticsAtOnce;
           ++it, ++n) {
        after = it->first;
        if (it->second.state() == WorkerState::kReady) names.push_back(after);
      }
      more = it != workers.end();
    }
    for (const std::string& name : names)
      statistics_.AddWorker(name, since, &slots);
    if (!more) return slots;
  }
}

absl::StatusOr<BottleneckView> Coordinator::BottleneckOf(const std::string& job,
                                                         WorkerSlots* workers,
                                                         MonotonicTime since,
                                                         Now now) const {
  std::vector<std::string> names;
  bool served = false;
  BottleneckView view;
  view.job = job;
  Duration open{0};  // since the first of them opened
  {
    MutexLock lock(&mu_);
    served =
        parts_->membership.num_ready() > 0 || WorkersMayCome(*parts_, now.mono);
    if (parts_->state.FindJob(job) == nullptr)
      return NotFound("no job \"{}\"", job);
    for (const SessionId id : parts_->sessions.consumers().OfJob(job)) {
      if (!parts_->sessions.consumers().IsNewest(id)) continue;
      const Consumer& consumer = *parts_->sessions.consumers().Find(id);
      names.push_back(consumer.opening.consumer);
      open = std::max<Duration>(open, now.wall - consumer.opened_at);
    }
  }
  const std::optional<ConsumerPast> slowest =
      SlowestOf(statistics_, names, since, now, &view);
  // Computed once for all jobs of the call.
  if (slowest && slowest->begin < workers->since())
    *workers = WorkersSince(std::min(since, now.mono - kLookBack));
  view.workers = workers->workers();
  if (slowest && !slowest->waits.empty()) view.waiting = slowest->mean.waiting;
  if (names.empty()) {
    view.found = FindBottleneck({}, {});
  } else if (!served && (!slowest || slowest->waits.empty() ||
                         slowest->mean.waiting > 0)) {
    view.found =
        NoWorkers(slowest ? slowest->mean : ConsumerStatistics{.waiting = 1});
  } else if (!slowest) {
    view.seen = std::min<Duration>(open, now.mono - since);
    view.found = NotYet("no batch of it has come yet");
  } else if (!slowest->enough) {
    view.found = NotYet(
        "its batches have come for too short a time: 20 seconds and a few "
        "steps, or some 50 steps, are enough");
  } else {
    const auto name_source = [&](uint32_t number) {
      MutexLock lock(&mu_);
      const JobRecord* const found = parts_->state.FindJob(job);
      if (found == nullptr || number >= found->info->spec.sources.size())
        return std::string();
      return found->info->spec.sources[number].name;
    };
    view.found =
        statistics_.Judge({.name = job,
                           .before = statistics_.jobs().Before(job, now.mono),
                           .name_source = name_source},
                          *slowest, *workers);
    statistics_.jobs().Give(job, view.found.limit, now.mono);
    // Workers without reports count as workers.
    if (served && view.found.limit == Limit::kWorkers)
      view.found = {.limit = Limit::kUnknown,
                    .summary = "the workers have not told what they do",
                    .advice = "ask again in a few seconds"};
  }
  return view;
}

}  // namespace leat::server
