// SPDX-License-Identifier: Apache-2.0
//
// PoolDecisions: how many workers each pool with bounds should have, by what
// its jobs did. It has no lock, since figures are asked for, of many consumers
// and workers; the owner lets in one thread at a time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster/pool_policy.h"
#include "server/coordinator/parts/pools.h"
#include "server/observe/figures.h"

namespace leat::server {

class PoolDecisions {
 public:
  using WorkersSince = std::function<WorkerSlots(MonotonicTime)>;

  // `figures` outlives it. `scale_down_after`: CoordinatorConfig's.
  PoolDecisions(const Figures* figures, Duration scale_down_after)
      : figures_(figures), scale_down_after_(scale_down_after) {}

  // Sets the targets. `workers_since`: Coordinator's function.
  void Decide(MonotonicTime now, const WorkersSince& workers_since,
              PoolsSeen* seen);

 private:
  std::optional<std::vector<PoolJob>> Jobs(const PoolsSeen& seen,
                                           const PoolSeen& pool,
                                           MonotonicTime since,
                                           MonotonicTime now,
                                           const WorkersSince& workers) const;

  const Figures* const figures_;
  const Duration scale_down_after_;
  std::map<std::string, PoolPolicy> policies_;  // by pool
};

// What the jobs of a pool that nobody scales did lately.
double DemandOf(const Figures& figures, const PoolsSeen& seen,
                const std::string& pool, MonotonicTime now);

}  // namespace leat::server
