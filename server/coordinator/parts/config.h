// SPDX-License-Identifier: Apache-2.0
//
// CoordinatorConfig: the settings that a Coordinator starts with.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "core/clock.h"
#include "core/cluster/pool_policy.h"
#include "core/plan/index_blocks.h"
#include "server/jobs/indexing.h"
#include "server/jobs/job_creation.h"
#include "server/membership/membership.h"
#include "server/observe/cluster_events.h"
#include "server/observe/history.h"
#include "server/state/types.h"

namespace leat::server {

struct CoordinatorConfig {
  MembershipConfig membership;
  IndexingConfig indexing;
  Duration heartbeat_interval = std::chrono::seconds(1);
  // Changes of members within this time share one new assignment.
  Duration assignment_delay = std::chrono::milliseconds(50);
  // A consumer is reported as stalled if it has waited for batches for more
  // than this share of its time, for this long.
  double stall_fraction = 0.25;
  Duration stall_after = std::chrono::seconds(10);
  History::Config history;  // of workers' and consumers' statistics
  ClusterEvents::Config events;
  // A finding that was absent for this long has gone.
  Duration finding_gone_after = std::chrono::seconds(10);
  size_t max_consumers = 20'000;
  size_t max_waiting_jobs = 4096;
  size_t max_transactions = 4096;
  JobLimits jobs;
  size_t max_bad_samples = 100;            // listed per job; all are counted
  uint64_t max_index_bytes = 64ull << 30;  // of all its blocks; workers receive
                                           // this and the next
  uint64_t index_block_bytes = kIndexBlockBytes;
  // How long a block without a referring dataset is kept.
  Duration keep_blocks = std::chrono::hours(1);
  // A job that was unused for this long is deleted, and its dataset with the
  // last of its jobs; 0: never.
  Duration job_ttl = std::chrono::hours(30 * 24);
  // How long a start without workers goes unreported: they are reconnecting.
  Duration no_workers_after = std::chrono::seconds(10);
  // After a start with pools in the store, how long workers may take to
  // reconnect.
  Duration pool_decision_delay = std::chrono::seconds(15);
  // A pool shrinks after trainers wanted less than it can give for this long.
  Duration scale_down_after = kPoolLowFor;
  std::string cluster = "leat";  // its name, for people
  // Not empty: the unprotected address on the network (rpc/call/auth.h).
  std::string insecure_listener;
  std::string not_confined;  // why this process is not; empty: it is

  // kInvalidArgument names the field, the value and the expectation.
  absl::Status Validate() const;
};

}  // namespace leat::server
