// SPDX-License-Identifier: Apache-2.0
//
// Calls about pools (server/coordinator/parts/pools.h).
#include <utility>

#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/parts.h"

namespace leat::server {

void Coordinator::DecidePools(Now now) {
  MutexLock deciding(&pools_mu_);
  PoolsSeen seen;
  {
    MutexLock lock(&mu_);
    if (now.mono < parts_->pools.due()) return;
    seen = parts_->pools.SeeToDecide(now);
  }
  pool_decisions_.Decide(
      now.mono, [this](MonotonicTime since) { return WorkersSince(since); },
      &seen);
  DeferredActions deferred;
  MutexLock lock(&mu_);
  parts_->pools.Publish(seen, now, &deferred);
}

void Coordinator::SetPool(const std::string& name, const PoolBounds& bounds,
                          Done done) {
  absl::Status fits = CheckPoolName(name);
  fits.Update(CheckPoolBounds(bounds));
  if (!fits.ok()) return done(fits);
  DeferredActions deferred;
  MutexLock lock(&mu_);
  parts_->pools.Set(name, bounds, std::move(done), &deferred);
}

std::vector<PoolView> Coordinator::Pools(MonotonicTime now) const {
  std::vector<PoolView> pools;
  PoolsSeen seen;
  {
    MutexLock lock(&mu_);
    pools = parts_->pools.Views();
    seen = parts_->pools.See(pools);
  }
  for (PoolView& pool : pools)
    if (pool.bounds.max == 0)  // otherwise its policy sets it
      pool.target.demand_rows_per_s =
          DemandOf(statistics_, seen, pool.name, now);
  return pools;
}

absl::StatusOr<PoolView> Coordinator::DecidedPool(
    const std::string& name) const {
  RETURN_IF_ERROR(CheckPoolName(name));
  MutexLock lock(&mu_);
  if (parts_->shut_down) return Stopping();
  return parts_->pools.Decided(name);
}

absl::StatusOr<uint64_t> Coordinator::WatchPool(const std::string& name,
                                                Wake wake) {
  RETURN_IF_ERROR(CheckPoolName(name));
  MutexLock lock(&mu_);
  if (parts_->shut_down) return Stopping();
  return parts_->pools.Watch(name, std::move(wake));
}

absl::StatusOr<std::optional<PoolView>> Coordinator::NextForWatcher(
    uint64_t watcher) {
  MutexLock lock(&mu_);
  if (parts_->shut_down) return Stopping();
  return parts_->pools.NextForWatcher(watcher);
}

void Coordinator::CloseWatcher(uint64_t watcher) {
  MutexLock lock(&mu_);
  parts_->pools.CloseWatcher(watcher);
}

}  // namespace leat::server
