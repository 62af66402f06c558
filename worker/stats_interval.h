// SPDX-License-Identifier: Apache-2.0
//
// StatsInterval: collects a worker's statistics: totals, and rates since the
// last call. Heartbeats and scrapes have one each, so that neither ends the
// other's interval. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/observe/stages.h"
#include "leat/v1/types.pb.h"
#include "rpc/process/machine.h"
#include "worker/cache/idle_forms.h"
#include "worker/cache/sample_cache.h"
#include "worker/compute/buffer_pool.h"
#include "worker/compute/gpu_worker.h"
#include "worker/config/config.h"
#include "worker/job/bad_samples.h"
#include "worker/job/job_table.h"
#include "worker/scheduler/scheduler.h"
#include "worker/serving/record_client.h"
#include "worker/serving/records_service.h"
#include "worker/serving/rows_service.h"
#include "worker/session/capacity.h"
#include "worker/session/slowest_sources.h"
#include "worker/shared_memory/server.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

// The parts that are read; they outlive the StatsInterval.
struct StatsSources {
  const Config* config = nullptr;
  const Scheduler* scheduler = nullptr;
  SampleCache* cache = nullptr;
  IdleForms* idle_forms = nullptr;
  const Storage* storage = nullptr;
  GpuWorker* gpus = nullptr;
  const BufferPool* pool = nullptr;
  SharedMemoryServer* sharing = nullptr;  // nullptr: memory is not taken
  JobTable* jobs = nullptr;
  RowsService* rows = nullptr;
  RecordClient* peers = nullptr;
  RecordCalls* records = nullptr;
  BadSamples* bad_samples = nullptr;
  StageClocks* listing = nullptr;
};

class StatsInterval {
 public:
  explicit StatsInterval(const StatsSources& sources) : of_(sources) {}

  // Collects the statistics of the time since the last call, or since this was
  // made.
  v1::WorkerStats Collect() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Adds rates, and the most that the device and the threads could do.
  void AddRates(const Scheduler::Stats& now, const std::vector<GpuStats>& gpus,
                double seconds, v1::WorkerStats* stats)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddRows(const Scheduler::Stats& now, v1::WorkerStats* stats) const;
  void AddCaches(v1::WorkerStats* stats) const;

  const StatsSources of_;
  const std::vector<std::string> quota_counters_ = rpc::QuotaCounters({});
  Mutex mu_;
  // The totals at the end of the last interval, and the capacity learned so
  // far.
  MonotonicTime last_at_ ABSL_GUARDED_BY(mu_) = Clock::Real().Now();
  Scheduler::Stats last_ ABSL_GUARDED_BY(mu_);
  std::vector<GpuStats> last_gpus_ ABSL_GUARDED_BY(mu_);
  Capacity capacity_ ABSL_GUARDED_BY(mu_);
  SlowestSources slowest_sources_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::worker
