// SPDX-License-Identifier: Apache-2.0
#include "worker/stats_interval.h"

#include <algorithm>

#include "rpc/server/server.h"
#include "worker/session/device_stats.h"
#include "worker/session/heartbeat_parts.h"
#include "worker/session/listings.h"
#include "worker/session/stage_report.h"

namespace leat::worker {

v1::WorkerStats StatsInterval::Collect() {
  v1::WorkerStats stats;
  MutexLock lock(&mu_);
  // Under the lock, so that no total is older than that of the call before.
  const Scheduler::Stats now = of_.scheduler->stats();
  const MonotonicTime at = Clock::Real().Now();
  const double seconds =
      std::max(1e-6, std::chrono::duration<double>(at - last_at_).count());
  const std::vector<GpuStats> gpus = of_.gpus->stats();
  AddRates(now, gpus, seconds, &stats);
  AddRows(now, &stats);
  AddCaches(&stats);
  stats.set_rss_bytes(rpc::ResidentBytes());
  AddQuota(rpc::UseOfQuota(quota_counters_), &stats);
  slowest_sources_.Add(of_.jobs->StorageTimes(), &stats);
  AddStages({.scheduler = now,
             .threads = of_.config->threads,
             .listers = ListingOptions{}.all_threads(),
             .listing = of_.listing->Fold(),
             .gpus = gpus},
            stats.mutable_stages());
  last_ = now;
  last_gpus_ = gpus;
  last_at_ = at;
  return stats;
}

void StatsInterval::AddRates(const Scheduler::Stats& now,
                             const std::vector<GpuStats>& gpus, double seconds,
                             v1::WorkerStats* stats) {
  const auto rows = static_cast<double>(now.rows_total - last_.rows_total);
  const double busy =
      static_cast<double>(now.busy_ns_total - last_.busy_ns_total) / 1e9;
  const int threads = of_.config->threads;
  capacity_.Update({.rows = rows,
                    .threads = static_cast<double>(threads),
                    .thread_seconds = busy},
                   AddDeviceStats(last_gpus_, gpus, seconds, stats));
  stats->set_rows_per_s(rows / seconds);
  stats->set_capacity_rows_per_s(capacity_.rows_per_s());
  stats->set_busy_fraction(std::clamp(busy / seconds / threads, 0.0, 1.0));
  AddLatency(Histogram::Summarize(last_.latency, now.latency),
             stats->mutable_row_latency());
}

void StatsInterval::AddRows(const Scheduler::Stats& now,
                            v1::WorkerStats* stats) const {
  const auto& served = of_.rows->counters();
  stats->set_rows_total(now.rows_total);
  stats->set_rows_queued(now.rows_queued);
  stats->set_rows_placed_total(now.rows_placed_total);
  stats->set_rows_ahead(now.rows_ahead);
  stats->set_bytes_ahead(now.bytes_ahead);
  stats->set_streams(now.streams);
  stats->set_bytes_sent_total(served.bytes_sent);
  stats->set_payload_copies_total(served.payload_copies);
  stats->set_damaged_streams_total(served.damaged_streams);
  AddSharedRows(now, stats);
  AddJobs(now, stats);
  if (of_.sharing != nullptr)
    stats->set_shared_memory_bytes(of_.sharing->counters().bytes);
  stats->set_buffers_in_use(of_.pool->buffers_in_use());
  stats->set_buffers_total(of_.pool->buffers_total());
  stats->set_bad_samples_total(of_.bad_samples->total());
}

void StatsInterval::AddCaches(v1::WorkerStats* stats) const {
  const SampleCache::Stats cached = of_.cache->stats();
  AddCached(cached.datasets, stats->mutable_cached_datasets());
  stats->set_cache_bytes(cached.bytes);
  stats->set_cache_limit_bytes(of_.cache->limit_bytes());
  stats->set_cache_hits_total(cached.hits);
  stats->set_cache_misses_total(cached.misses);
  AddFormAccount(of_.cache->forms().account().totals(), stats);
  AddIdleForms(of_.idle_forms->stats(), stats);
  AddStorage(of_.storage->counters(), stats);
  AddPeerRecords(of_.peers->counters(), of_.records->given(), stats);
  const IndexCache::Stats indexes = of_.jobs->index_stats();
  stats->set_index_bytes(indexes.bytes);
  stats->set_index_blocks_fetched_total(indexes.fetched_total);
}

}  // namespace leat::worker
