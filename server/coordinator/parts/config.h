// SPDX-License-Identifier: Apache-2.0
//
// What a Coordinator is started with.
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
  // Changes of members within this time make one new assignment.
  Duration assignment_delay = std::chrono::milliseconds(50);
  // The share of its time that a consumer may wait for batches, and for how
  // long, before it is reported as stalled.
  double stall_fraction = 0.25;
  Duration stall_after = std::chrono::seconds(10);
  History::Config history;  // of what workers and consumers did
  ClusterEvents::Config events;
  // A finding that was not there for so long has gone.
  Duration finding_gone_after = std::chrono::seconds(10);
  size_t max_consumers = 20'000;
  size_t max_waiting_jobs = 4096;
  size_t max_writes = 4096;
  JobLimits jobs;
  size_t max_bad_samples = 100;            // listed per job; all are counted
  uint64_t max_index_bytes = 64ull << 30;  // of all its blocks; workers are
                                           // told this and the next
  uint64_t index_block_bytes = kIndexBlockBytes;
  // A block that no dataset refers to is kept for so long.
  Duration keep_blocks = std::chrono::hours(1);
  // A job that nobody has used for so long is deleted, and its dataset with the
  // last of its jobs; 0: never.
  Duration job_ttl = std::chrono::hours(30 * 24);
  // A start without workers is none to tell of before: they come back.
  Duration no_workers_after = std::chrono::seconds(10);
  // After a start with pools in the store: workers come back in this time.
  Duration pool_hold = std::chrono::seconds(15);
  // Trainers want less than a pool can give for so long before it gets smaller.
  Duration scale_down_after = kPoolLowFor;
  std::string cluster = "leat";  // its name, for people
  // Not empty: the address that is exposed to the network (rpc/call/auth.h).
  std::string insecure_listener;
  std::string not_confined;  // why this process is not; empty: it is

  // kInvalidArgument names the field, the value and what was expected.
  absl::Status Validate() const;
};

}  // namespace leat::server
