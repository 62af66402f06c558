// SPDX-License-Identifier: Apache-2.0
//
// Pools: how many workers there should be, and who is told.
//
//   Tick, every 2 s ─► DecidePools:  what is known, with the lock
//                                    figures and core/cluster/pool_policy.h,
//                                    without victims retire and watchers wake,
//                                    with it
//   SetPool ─► durable event ─► DecidePools at once
//
// Targets are soft. After a start with pools in the store nothing is decided
// for `pool_hold`, in which the workers come back: an engine that was told of a
// pool without workers would end those that it has.
#include <algorithm>
#include <map>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/internal.h"

namespace leat::server {
namespace {

constexpr Duration kDecideEvery = std::chrono::seconds(2);
// Figures of less time say nothing.
constexpr Duration kLeastSeen = std::chrono::seconds(6);
// A wait that has not been seen for so long is over.
constexpr Duration kStillWaits = std::chrono::seconds(6);
constexpr double kWaits = 0.02;
constexpr size_t kMaxPools = 1000;
constexpr size_t kMaxWatchers = 1000;

// Demand of a pool that nobody scales is of so long.
constexpr Duration kDemandOf = std::chrono::seconds(20);

double WeightOf(const std::map<DecoderClass, double>& weights,
                DecoderClass decoder_class) {
  const auto found = weights.find(decoder_class);
  return found == weights.end() ? 0 : found->second;
}

// A job that has consumers.
struct PoolJobSeen {
  std::string name;
  DecoderClass decoder_class = DecoderClass::kExact;
  std::vector<std::string> consumers;
};

// What a job's consumers did since then, as one pool sees it, but for whether
// it stalls. nullopt: nobody has told it yet.
std::optional<PoolJob> PoolJobSince(const Figures& figures,
                                    const PoolJobSeen& from,
                                    const std::map<DecoderClass, double>& all,
                                    const std::map<DecoderClass, double>& own,
                                    MonotonicTime since) {
  std::optional<PoolJob> job;
  for (const std::string& name : from.consumers) {
    const auto did = figures.OfConsumer(name, since);
    if (!did) continue;
    if (!job) job = PoolJob{.name = from.name};
    job->rows_per_s += did->rows_per_s;
    job->waiting = std::max(job->waiting, did->waiting);
  }
  if (!job) return std::nullopt;
  const double weight = WeightOf(all, from.decoder_class);
  if (weight > 0) job->share = WeightOf(own, from.decoder_class) / weight;
  return job;
}

}  // namespace

struct Coordinator::PoolSeen {
  PoolBounds bounds;
  std::vector<PoolWorker> workers;
  std::vector<std::string> drained;        // by an operator
  std::map<DecoderClass, double> weights;  // of those that serve
  PoolTarget target;                       // becomes what was decided
};

// What DecidePools looks at.
struct Coordinator::PoolsSeen {
  std::map<std::string, PoolSeen> pools;   // those with bounds
  std::map<DecoderClass, double> weights;  // of all workers that serve
  std::vector<PoolJobSeen> jobs;           // that have consumers
};

// `others`: pools without bounds that are looked at, too.
Coordinator::PoolsSeen Coordinator::SeePools(
    const std::vector<PoolView>& others) const {
  PoolsSeen seen;
  for (const PoolView& other : others) seen.pools.try_emplace(other.name);
  for (const auto& [name, pool] : state_.pools())
    seen.pools[name].bounds = pool.bounds;
  for (const auto& [name, worker] : membership_.workers()) {
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
  for (const auto& [id, consumer] : consumers_.all()) {
    PoolJobSeen& job = jobs[consumer.job];
    job.name = consumer.job;
    job.decoder_class = consumer.key.decoder_class;
    job.consumers.push_back(consumer.opening.consumer);
  }
  for (auto& [name, job] : jobs) seen.jobs.push_back(std::move(job));
  return seen;
}

// What the jobs did since then, as one pool sees it. nullopt: nobody has told
// it yet.
std::optional<std::vector<PoolJob>> Coordinator::PoolJobs(
    const PoolsSeen& seen, const PoolSeen& pool, MonotonicTime since,
    MonotonicTime now) const {
  if (now < since + kLeastSeen) return std::nullopt;
  std::vector<PoolJob> jobs;
  std::optional<WorkerSlots> workers;
  for (const PoolJobSeen& from : seen.jobs) {
    std::optional<PoolJob> told =
        PoolJobSince(figures_, from, seen.weights, pool.weights, since);
    if (!told) continue;
    PoolJob job = *std::move(told);
    std::optional<ConsumerPast> slowest;
    double lately = 0;
    for (const std::string& name : from.consumers) {
      if (const auto last = figures_.OfConsumer(name, now - kStillWaits))
        lately = std::max(lately, last->waiting);
      std::optional<ConsumerPast> past = figures_.PastOf(name, since);
      if (past && !past->waits.empty() &&
          (!slowest || past->figures.waiting > slowest->figures.waiting))
        slowest = *std::move(past);
    }
    job.stalls = lately > kWaits && (job.share > 0 || pool.workers.empty());
    if (job.stalls && job.waiting > kWaits && slowest) {
      if (!workers || slowest->begin < workers->since())
        workers = WorkersSince(std::min(since, slowest->begin));
      job.stalls =
          figures_.Judge(from.name, *slowest, *workers).limit != Limit::kWindow;
    }
    jobs.push_back(std::move(job));
  }
  if (jobs.empty() && !seen.jobs.empty()) return std::nullopt;
  return jobs;
}

void Coordinator::DecidePools(Now now) {
  MutexLock deciding(&pools_mu_);
  PoolsSeen seen;
  {
    MutexLock lock(&mu_);
    if (now.mono < pools_at_) return;
    seen = SeePools({});
    pools_at_ =
        seen.pools.empty() ? MonotonicTime::max() : now.mono + kDecideEvery;
  }
  std::erase_if(policies_, [&](const auto& each) {
    return !seen.pools.contains(each.first);
  });
  for (auto& [name, pool] : seen.pools) {
    PoolPolicy& policy =
        policies_.try_emplace(name, config_.scale_down_after).first->second;
    pool.target = policy.Decide(
        pool.bounds, pool.workers,
        PoolJobs(seen, pool, policy.LookFrom(now.mono), now.mono), now.mono);
  }
  Effects effects;
  MutexLock lock(&mu_);
  PublishPools(seen, now, &effects);
}

void Coordinator::PublishPools(const PoolsSeen& seen, Now now,
                               Effects* effects) {
  bool moved = false;
  for (const auto& [name, pool] : seen.pools) {
    for (const PoolWorker& worker : pool.workers)
      moved |= membership_.SetRetiring(
          worker.name,
          std::ranges::binary_search(pool.target.drain, worker.name));
    PublishedPool next{pool.bounds, pool.target, 0};
    next.target.drain.insert(next.target.drain.end(), pool.drained.begin(),
                             pool.drained.end());
    std::ranges::sort(next.target.drain);
    PublishedPool& before = pools_[name];
    const bool same = before.version > 0 && before.bounds == next.bounds &&
                      before.target.desired == next.target.desired &&
                      before.target.drain == next.target.drain;
    next.version = same ? before.version : ++pool_version_;
    if (before.target.desired != next.target.desired || before.version == 0)
      effects->Add([pool_name = name, target = next.target] {
        LOG_INFO("pool.desired pool={} desired={} drain={} reason=\"{}\"",
                 pool_name, target.desired, target.drain.size(), target.reason);
      });
    before = std::move(next);
    if (!same) WakeWatchers(name, effects);
  }
  // Pools that have lost their bounds give up nobody.
  std::vector<std::string> back;
  for (const auto& [name, worker] : membership_.workers())
    if (worker.retiring && !seen.pools.contains(worker.registration->pool))
      back.push_back(name);
  for (const std::string& name : back)
    moved |= membership_.SetRetiring(name, false);
  for (auto it = pools_.begin(); it != pools_.end();) {
    if (seen.pools.contains(it->first)) {
      ++it;
      continue;
    }
    ++pool_version_;
    WakeWatchers(it->first, effects);
    it = pools_.erase(it);
  }
  if (moved) MembersChanged(now, effects);
}

void Coordinator::WakeWatchers(const std::string& pool, Effects* effects) {
  for (const auto& [id, watcher] : pool_watchers_)
    if (watcher.pool == pool) effects->Add(watcher.wake);
}

void Coordinator::SetPool(const std::string& name, const PoolBounds& bounds,
                          Done done) {
  absl::Status fits = CheckPoolName(name);
  fits.Update(CheckPoolBounds(bounds));
  if (!fits.ok()) return done(fits);
  Effects effects;
  MutexLock lock(&mu_);
  Write write;
  write.decide = [this, name,
                  bounds](Effects*) -> absl::StatusOr<std::optional<Event>> {
    mu_.AssertHeld();
    const auto found = state_.pools().find(name);
    const bool known = found != state_.pools().end();
    if (known ? found->second.bounds == bounds : bounds.max == 0)
      return std::nullopt;
    if (!known && state_.pools().size() >= kMaxPools)
      return ResourceExhausted("there are {} pools with bounds, the limit",
                               kMaxPools);
    return Event{{}, PoolBounded{name, bounds}, {}};
  };
  write.finish = [this, name, bounds, done = std::move(done)](
                     const absl::Status& status, Effects* inner) {
    mu_.AssertHeld();
    if (status.ok()) {
      inner->Add([name, bounds] {
        LOG_INFO("pool.set pool={} min={} max={}", name, bounds.min,
                 bounds.max);
      });
      // Not before workers of before the start have come back.
      pools_at_ = pools_held_until_;
      inner->Add(wake_);
    }
    inner->Add([done, status] { done(status); });
  };
  Enqueue(std::move(write), &effects);
}

PoolView Coordinator::ViewOfPool(const std::string& name) const {
  PoolView view;
  view.name = name;
  view.version = pool_version_;
  if (const auto found = pools_.find(name); found != pools_.end()) {
    view.bounds = found->second.bounds;
    view.target = found->second.target;
    view.version = found->second.version;
  } else if (const auto set = state_.pools().find(name);
             set != state_.pools().end()) {
    view.bounds = set->second.bounds;
    view.target.reason = "not decided yet: workers may come back";
  } else {
    view.target.reason =
        fmt::format("nobody scales it: leat pool set {} --min N --max N", name);
  }
  return view;
}

std::vector<PoolView> Coordinator::Pools(MonotonicTime now) const {
  std::vector<PoolView> pools;
  PoolsSeen seen;
  {
    MutexLock lock(&mu_);
    pools = PoolsLocked();
    seen = SeePools(pools);
  }
  for (PoolView& pool : pools) {
    if (pool.bounds.max > 0) continue;  // its policy tells
    std::vector<PoolJob> jobs;
    for (const PoolJobSeen& job : seen.jobs)
      if (auto of =
              PoolJobSince(figures_, job, seen.weights,
                           seen.pools.at(pool.name).weights, now - kDemandOf))
        jobs.push_back(*std::move(of));
    pool.target.demand_rows_per_s = DemandOf(jobs);
  }
  return pools;
}

std::vector<PoolView> Coordinator::PoolsLocked() const {
  std::map<std::string, PoolView> views;
  for (const auto& [name, pool] : state_.pools())
    views[name] = ViewOfPool(name);
  for (const auto& [name, worker] : membership_.workers()) {
    if (worker.lost) continue;
    const std::string& pool = worker.registration->pool;
    const auto [it, added] = views.try_emplace(pool);
    if (added) it->second = ViewOfPool(pool);
    ++it->second.workers;
    const bool serves = worker.state() == WorkerState::kReady;
    if (!serves) ++it->second.draining;
    if (it->second.bounds.max == 0 && serves) ++it->second.target.desired;
  }
  std::vector<PoolView> sorted;
  for (auto& [name, view] : views) sorted.push_back(std::move(view));
  return sorted;
}

absl::StatusOr<PoolView> Coordinator::DecidedPool(
    const std::string& name) const {
  RETURN_IF_ERROR(CheckPoolName(name));
  MutexLock lock(&mu_);
  if (shut_down_) return Unavailable("the coordinator is stopping");
  PoolView view = ViewOfPool(name);
  if (view.bounds.max == 0)
    return FailedPrecondition("pool \"{}\": {}", name, view.target.reason);
  if (!pools_.contains(name))
    return Unavailable("pool \"{}\": {}", name, view.target.reason);
  return view;
}

absl::StatusOr<uint64_t> Coordinator::WatchPool(const std::string& name,
                                                Wake wake) {
  RETURN_IF_ERROR(CheckPoolName(name));
  MutexLock lock(&mu_);
  if (shut_down_) return Unavailable("the coordinator is stopping");
  if (pool_watchers_.size() >= kMaxWatchers)
    return ResourceExhausted("{} watch pools, the limit", kMaxWatchers);
  const uint64_t id = next_id_++;
  pool_watchers_[id] = {name, std::move(wake), std::nullopt};
  return id;
}

absl::StatusOr<std::optional<PoolView>> Coordinator::NextForWatcher(
    uint64_t id) {
  MutexLock lock(&mu_);
  if (shut_down_) return Unavailable("the coordinator is stopping");
  const auto found = pool_watchers_.find(id);
  if (found == pool_watchers_.end()) return NotFound("no watcher {}", id);
  PoolWatcher& watcher = found->second;
  const bool set = state_.pools().contains(watcher.pool);
  if (set && !pools_.contains(watcher.pool)) return std::nullopt;
  PoolView view = ViewOfPool(watcher.pool);
  // There is one thing to say about a pool without bounds.
  const uint64_t version = view.bounds.max == 0 ? 0 : view.version;
  if (watcher.sent == version) return std::nullopt;
  watcher.sent = version;
  for (const auto& [name, worker] : membership_.workers()) {
    if (worker.lost || worker.registration->pool != watcher.pool) continue;
    ++view.workers;
    if (worker.state() != WorkerState::kReady) ++view.draining;
  }
  return view;
}

void Coordinator::CloseWatcher(uint64_t id) {
  MutexLock lock(&mu_);
  pool_watchers_.erase(id);
}

}  // namespace leat::server
