// SPDX-License-Identifier: Apache-2.0
//
// PoolDecisions decides how many workers each pool with bounds should have,
// from what its jobs did. It has no lock, since it reads the statistics of many
// consumers and workers; the owner admits one thread at a time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster/pool_policy.h"
#include "server/coordinator/parts/pools.h"
#include "server/observe/statistics.h"

namespace leat::server {

class PoolDecisions {
 public:
  using WorkersSince = std::function<WorkerSlots(MonotonicTime)>;

  // `statistics` outlives it. `scale_down_after`: as in CoordinatorConfig.
  PoolDecisions(const Statistics* statistics, Duration scale_down_after)
      : statistics_(statistics), scale_down_after_(scale_down_after) {}

  // Sets the targets. `workers_since`: Coordinator::WorkersSince.
  void Decide(MonotonicTime now, const WorkersSince& workers_since,
              PoolsSeen* seen);

 private:
  std::optional<std::vector<PoolJob>> Jobs(const PoolsSeen& seen,
                                           const PoolSeen& pool,
                                           MonotonicTime since,
                                           MonotonicTime now,
                                           const WorkersSince& workers) const;

  const Statistics* const statistics_;
  const Duration scale_down_after_;
  std::map<std::string, PoolPolicy> policies_;  // by pool
};

// Returns the recent demand, in rows/s, of the jobs of a pool that is not
// scaled.
double DemandOf(const Statistics& statistics, const PoolsSeen& seen,
                const std::string& pool, MonotonicTime now);

}  // namespace leat::server
