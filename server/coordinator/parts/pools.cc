// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/parts/pools.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/status.h"

namespace leat::server {
namespace {

constexpr Duration kDecideEvery = std::chrono::seconds(2);
constexpr size_t kMaxPools = 1000;
constexpr size_t kMaxWatchers = 1000;

}  // namespace

void Pools::Start(Now now, Duration delay) {
  if (!state_->pools().empty()) due_ = decide_after_ = now.mono + delay;
}

PoolsSeen Pools::See(const std::vector<PoolView>& others) const {
  PoolsSeen seen;
  for (const PoolView& other : others) seen.pools.try_emplace(other.name);
  for (const auto& [name, pool] : state_->pools())
    seen.pools[name].bounds = pool.bounds;
  for (const auto& [name, worker] : membership_->workers()) {
    if (worker.lost) continue;
    const bool serves = worker.state() == WorkerState::kReady;
    const WorkerRegistration& registration = *worker.registration;
    const auto pool = seen.pools.find(registration.pool);
    if (serves)
      for (const DecoderClass each : registration.decoder_classes) {
        seen.weights[each] += worker.weight;
        if (pool != seen.pools.end())
          pool->second.weights[each] += worker.weight;
      }
    if (pool == seen.pools.end()) continue;
    if (worker.drained) {
      pool->second.drained.push_back(name);
      continue;
    }
    const v1::WorkerStats* const stats = worker.report.stats.get();
    pool->second.workers.push_back(
        {name, worker.report.capacity_rows_per_s,
         stats == nullptr ? 0 : stats->cache_bytes()});
  }
  std::map<std::string, PoolJobSeen> jobs;
  for (const auto& [id, consumer] : sessions_->consumers().all()) {
    if (!sessions_->consumers().IsNewest(id)) continue;
    PoolJobSeen& job = jobs[consumer.job];
    job.name = consumer.job;
    job.decoder_class = consumer.keys[0].decoder_class;
    job.consumers.push_back(consumer.opening.consumer);
  }
  for (auto& [name, job] : jobs) seen.jobs.push_back(std::move(job));
  return seen;
}

PoolsSeen Pools::SeeToDecide(Now now) {
  PoolsSeen seen = See({});
  due_ = seen.pools.empty() ? MonotonicTime::max() : now.mono + kDecideEvery;
  return seen;
}

void Pools::Publish(const PoolsSeen& seen, Now now, DeferredActions* deferred) {
  bool moved = false;
  for (const auto& [name, pool] : seen.pools) {
    for (const PoolWorker& worker : pool.workers)
      moved |= membership_->SetRetiring(
          worker.name,
          std::ranges::binary_search(pool.target.drain, worker.name));
    Published next{pool.bounds, pool.target, 0};
    next.target.drain.insert(next.target.drain.end(), pool.drained.begin(),
                             pool.drained.end());
    std::ranges::sort(next.target.drain);
    Published& before = pools_[name];
    const bool same = before.version > 0 && before.bounds == next.bounds &&
                      before.target.desired == next.target.desired &&
                      before.target.drain == next.target.drain;
    next.version = same ? before.version : ++version_;
    if (before.target.desired != next.target.desired || before.version == 0)
      deferred->Add([pool_name = name, target = next.target] {
        LOG_INFO("pool.desired pool={} desired={} drain={} reason=\"{}\"",
                 pool_name, target.desired, target.drain.size(), target.reason);
      });
    before = std::move(next);
    if (!same) WakeWatchers(name, deferred);
  }
  // Pools that have lost their bounds retire no worker.
  std::vector<std::string> back;
  for (const auto& [name, worker] : membership_->workers())
    if (worker.retiring && !seen.pools.contains(worker.registration->pool))
      back.push_back(name);
  for (const std::string& name : back)
    moved |= membership_->SetRetiring(name, false);
  for (auto it = pools_.begin(); it != pools_.end();) {
    if (seen.pools.contains(it->first)) {
      ++it;
      continue;
    }
    ++version_;
    WakeWatchers(it->first, deferred);
    it = pools_.erase(it);
  }
  if (moved) tables_->MembersChanged(now, deferred);
}

void Pools::WakeWatchers(const std::string& pool,
                         DeferredActions* deferred) const {
  for (const auto& [id, watcher] : watchers_)
    if (watcher.pool == pool) deferred->Add(watcher.wake);
}

void Pools::WakeAll(DeferredActions* deferred) const {
  for (const auto& [id, watcher] : watchers_) deferred->Add(watcher.wake);
}

void Pools::Set(const std::string& name, const PoolBounds& bounds,
                AnsweredTransaction::Done done, DeferredActions* deferred) {
  const auto decide = [=, this]() -> absl::StatusOr<std::optional<Event>> {
    const auto& set = state_->pools();
    const auto found = set.find(name);
    const bool known = found != set.end();
    if (known ? found->second.bounds == bounds : bounds.max == 0)
      return std::nullopt;
    if (!known && set.size() >= kMaxPools)
      return ResourceExhausted("there are {} pools with bounds, the limit",
                               kMaxPools);
    return Event{{}, PoolBounded{name, bounds}, {}};
  };
  const auto changed = [=, this](DeferredActions* actions) {
    actions->Add([name, bounds] {
      LOG_INFO("pool.set pool={} min={} max={}", name, bounds.min, bounds.max);
    });
    // Waits until earlier workers have reconnected.
    due_ = decide_after_;
    actions->Add(wake_);
  };
  transactions_->Enqueue(
      std::make_unique<PlainTransaction>(decide, changed, std::move(done)),
      deferred);
}

PoolView Pools::ViewOf(const std::string& name) const {
  PoolView view;
  view.name = name;
  view.version = version_;
  if (const auto found = pools_.find(name); found != pools_.end()) {
    view.bounds = found->second.bounds;
    view.target = found->second.target;
    view.version = found->second.version;
  } else if (const auto set = state_->pools().find(name);
             set != state_->pools().end()) {
    view.bounds = set->second.bounds;
    view.target.reason = "not decided yet: workers may come back";
  } else {
    view.target.reason =
        fmt::format("it is not scaled: leat pool set {} --min N --max N", name);
  }
  return view;
}

std::vector<PoolView> Pools::Views() const {
  std::map<std::string, PoolView> views;
  for (const auto& [name, pool] : state_->pools()) views[name] = ViewOf(name);
  for (const auto& [name, worker] : membership_->workers()) {
    if (worker.lost) continue;
    const std::string& pool = worker.registration->pool;
    const auto [it, added] = views.try_emplace(pool);
    if (added) it->second = ViewOf(pool);
    ++it->second.workers;
    const bool serves = worker.state() == WorkerState::kReady;
    if (!serves) ++it->second.draining;
    if (it->second.bounds.max == 0 && serves) ++it->second.target.desired;
  }
  std::vector<PoolView> sorted;
  for (auto& [name, view] : views) sorted.push_back(std::move(view));
  return sorted;
}

absl::StatusOr<PoolView> Pools::Decided(const std::string& name) const {
  PoolView view = ViewOf(name);
  if (view.bounds.max == 0)
    return FailedPrecondition("pool \"{}\": {}", name, view.target.reason);
  if (!pools_.contains(name))
    return Unavailable("pool \"{}\": {}", name, view.target.reason);
  return view;
}

absl::StatusOr<uint64_t> Pools::Watch(const std::string& name, Wake wake) {
  if (watchers_.size() >= kMaxWatchers)
    return ResourceExhausted("{} watch pools, the limit", kMaxWatchers);
  const uint64_t id = sessions_->NewId();
  watchers_[id] = {name, std::move(wake), std::nullopt};
  return id;
}

absl::StatusOr<std::optional<PoolView>> Pools::NextForWatcher(uint64_t id) {
  const auto found = watchers_.find(id);
  if (found == watchers_.end()) return NotFound("no watcher {}", id);
  Watcher& watcher = found->second;
  const bool set = state_->pools().contains(watcher.pool);
  if (set && !pools_.contains(watcher.pool)) return std::nullopt;
  PoolView view = ViewOf(watcher.pool);
  // For a pool without bounds there is only one message.
  const uint64_t version = view.bounds.max == 0 ? 0 : view.version;
  if (watcher.sent == version) return std::nullopt;
  watcher.sent = version;
  for (const auto& [name, worker] : membership_->workers()) {
    if (worker.lost || worker.registration->pool != watcher.pool) continue;
    ++view.workers;
    if (worker.state() != WorkerState::kReady) ++view.draining;
  }
  return view;
}

}  // namespace leat::server
