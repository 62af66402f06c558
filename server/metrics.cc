// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "leat/v1/admin.pb.h"
#include "leat/v1/pool.pb.h"
#include "leat/v1/types.pb.h"
#include "server/views/messages.h"

namespace leat::server {
namespace {

using rpc::FieldMetric;
using rpc::Fold;
using rpc::kStartMetric;
using rpc::Metric;
using rpc::MetricKind;
using rpc::MetricPage;
using rpc::NoMetric;
using rpc::SecondsOf;

constexpr size_t kPage = 1000;

constexpr Metric kWorkers = {"leat_workers", MetricKind::kGauge,
                             "Workers that are known, by state."};
constexpr Metric kLease = {
    "leat_worker_lease_age_seconds", MetricKind::kGauge,
    "Time since the last heartbeat of the worker that has been silent longest, "
    "of those that are not lost."};
constexpr Metric kJobs = {"leat_jobs", MetricKind::kGauge,
                          "Jobs that are kept."};
constexpr Metric kShownJobs = {"leat_jobs_in_use", MetricKind::kGauge,
                               "Jobs that have consumers, or had bad samples."};
constexpr Metric kDatasets = {
    "leat_datasets", MetricKind::kGauge,
    "Datasets, with those that are being listed or could not be."};
constexpr Metric kConsumers = {"leat_consumers", MetricKind::kGauge,
                               "Batch iterators that have a session."};
constexpr Metric kFindings = {
    "leat_findings", MetricKind::kGauge,
    "Findings that stand now and are not muted, by code and severity (warn, "
    "error)."};
constexpr Metric kSequence = {"leat_state_sequence", MetricKind::kGauge,
                              "Number of the last event in the state."};
constexpr Metric kWritable = {
    "leat_state_writable", MetricKind::kGauge,
    "1: a change of the state could be kept; 0: /readyz says why not."};
constexpr Metric kCommit = {
    "leat_coordinator_commit_seconds", MetricKind::kHistogram,
    "Time of a change of the state to be durable: SQLite's commit with its "
    "fsync."};
constexpr Metric kCommitsFailed = {"leat_coordinator_commits_failed_total",
                                   MetricKind::kCounter,
                                   "Changes of the state that failed."};
constexpr FieldMetric kStatusFields[] = {
    NoMetric("version", "label of leat_build_info"),
    NoMetric("address", "a scraper knows it"),
    NoMetric("state_store", "a text; leat_state_writable says how it is"),
    {"started_at", kStartMetric.name, kStartMetric.kind, kStartMetric.help},
    {"sequence", kSequence.name, kSequence.kind, kSequence.help},
    {"findings", kFindings.name, kFindings.kind, kFindings.help},
    {"workers", kWorkers.name, kWorkers.kind, kWorkers.help},
    {"jobs", kJobs.name, kJobs.kind, kJobs.help},
    {"datasets", kDatasets.name, kDatasets.kind, kDatasets.help},
    NoMetric("log_level", "a text"),
    NoMetric("cluster", "label of leat_build_info"),
};

constexpr FieldMetric kFindingFields[] = {
    NoMetric("code", "label of leat_findings"),
    NoMetric("severity", "label of leat_findings"),
    NoMetric("summary", "a text for people"),
    NoMetric("remedy", "a text for people"),
    NoMetric("subjects", "names: in the CLI"),
    NoMetric("muted", "muted ones are not counted"),
    NoMetric("muted_until", "as muted"),
};

constexpr std::string_view kWorkersOwn = "on the worker's own page";

constexpr FieldMetric kWorkerFields[] = {
    NoMetric("name", "unbounded: a scraper's label of the worker's own page"),
    NoMetric("address", "unbounded"),
    {"state", kWorkers.name, kWorkers.kind, kWorkers.help},
    NoMetric("version", kWorkersOwn),
    {"threads", "leat_workers_threads", MetricKind::kGauge,
     "Decode threads of all workers that are not lost."},
    NoMetric("decoder_classes", "finding NO_DECODER says where one is missing"),
    NoMetric("abilities", "finding NO_ABILITY says where one is missing"),
    NoMetric("lacked", "finding NO_ABILITY has the reasons"),
    NoMetric("weight", "relative to others, of one worker"),
    {"shards_owned", "leat_workers_shards_owned", MetricKind::kGauge,
     "Shards that workers own first, of all datasets."},
    NoMetric("stats", kWorkersOwn),
    NoMetric("joined_at", "leat_start_time_seconds of the worker's own page"),
    {"last_heartbeat_at", kLease.name, kLease.kind, kLease.help},
    NoMetric("host", "unbounded"),
    NoMetric("pid", "names a process"),
    NoMetric("devices", kWorkersOwn),
    NoMetric("decoders", "digests and texts"),
    NoMetric("decoders_differ", "finding WORKER_DECODERS says it"),
    NoMetric("storage_failures", "finding WORKER_STORAGE says it"),
    NoMetric("public_key", "a key"),
    NoMetric("not_confined", "finding NOT_CONFINED says it"),
    NoMetric("pool", "leat_pool_workers counts by it"),
    NoMetric("insecure_listener", "finding INSECURE_LISTENER says it"),
};

// The fields of WorkerStats that can be summed; the others are on workers'
// pages.
constexpr FieldMetric kClusterFields[] = {
    {"rows_per_s", "leat_workers_rows_per_second", MetricKind::kGauge,
     "Rows that all workers made in a second, over their last reports."},
    {"capacity_rows_per_s", "leat_workers_capacity_rows_per_second",
     MetricKind::kGauge,
     "Rows that all workers could make in a second, as measured."},
};

constexpr FieldMetric kJobFields[] = {
    NoMetric("job", "its name is the label; the rest does not change"),
    NoMetric("created_at", "does not change"),
    NoMetric("created_by", "does not change"),
    {"consumers", "leat_job_consumers", MetricKind::kGauge,
     "Batch iterators of the job."},
    {"epoch", "leat_job_epoch", MetricKind::kGauge,
     "Epoch of the least advanced consumer."},
    {"step", "leat_job_step", MetricKind::kGauge,
     "Step in its epoch of the least advanced consumer."},
    {"steps_per_epoch", "leat_job_steps_per_epoch", MetricKind::kGauge,
     "Steps of an epoch; 0: no consumer has told it."},
    {"rows_per_s", "leat_job_rows_per_second", MetricKind::kGauge,
     "Rows that the job's consumers took in a second, over their last "
     "reports."},
    {"stall_fraction", "leat_job_stall_ratio", MetricKind::kGauge,
     "Share of its time, 0 to 1, that the worst consumer waited for batches, "
     "over its last report."},
    {"bad_samples_total", "leat_job_bad_samples_total", MetricKind::kCounter,
     "Bad samples that workers met, each as often as it was met."},
    NoMetric("bad_samples", "records and reasons: leat describe job"),
    NoMetric("last_used_at", "jobs in use have series"),
    NoMetric("gpu_use", "does not change"),
    NoMetric("gpu_reason", "a text"),
    {"bad_samples_different", "leat_job_bad_samples", MetricKind::kGauge,
     "Different bad samples of a job with max_bad."},
    {"bad_samples_allowed", "leat_job_bad_samples_allowed", MetricKind::kGauge,
     "Different bad samples that a job with max_bad may have."},
    NoMetric("failure", "finding JOB_GIVEN_UP says it"),
    NoMetric("decoders", "a digest and a text"),
    NoMetric("limited_by", "a text: leat bottleneck"),
    NoMetric("limited_by_seen", "its age: leat bottleneck"),
    NoMetric("position_at", "its age: leat describe job"),
    {"shared_fraction", "leat_job_shared_ratio", MetricKind::kGauge,
     "Share of the job's rows, 0 to 1, that workers had computed for another "
     "consumer."},
};

constexpr std::string_view kFalls =
    "a sum of counters that falls when a consumer leaves is no counter; "
    "workers count rows and bytes";

constexpr FieldMetric kConsumerFields[] = {
    NoMetric("consumer", "unbounded"),
    NoMetric("stats", "its message has fields of its own"),
    NoMetric("opened_at", "of one consumer"),
    NoMetric("last_report_at", "of one consumer"),
};

constexpr FieldMetric kConsumerStatsFields[] = {
    NoMetric("job", "the label"),
    NoMetric("host", "unbounded"),
    NoMetric("pid", "names a process"),
    NoMetric("epoch", "leat_job_epoch"),
    NoMetric("step", "leat_job_step"),
    NoMetric("steps_per_epoch", "leat_job_steps_per_epoch"),
    NoMetric("rows_total", kFalls),
    NoMetric("rows_per_s", "leat_job_rows_per_second"),
    NoMetric("stall_fraction", "leat_job_stall_ratio"),
    NoMetric("wait", "its message has fields of its own"),
    NoMetric("transport", "a text"),
    {"hedged_rows_total", "leat_job_hedged_rows", MetricKind::kGauge,
     "Rows that the job's present consumers asked of two workers, since they "
     "were late."},
    {"failed_over_rows_total", "leat_job_failed_over_rows", MetricKind::kGauge,
     "Rows that the job's present consumers asked of another worker, since one "
     "was lost."},
    NoMetric("bytes_received_total", kFalls),
    NoMetric("payload_copies_total", "of one consumer: leat get consumers"),
    NoMetric("memory", "a text"),
    NoMetric("stages", "of one consumer; leat bottleneck judges by it"),
    NoMetric("waited_for", "names of workers; leat bottleneck judges by it"),
    NoMetric("answer_ns_total",
             "of one consumer; leat bottleneck judges by it"),
    NoMetric("queued_ns_total",
             "of one consumer; leat bottleneck judges by it"),
    NoMetric("source_ns_total",
             "of one consumer; leat bottleneck judges by it"),
    NoMetric("first_row", "of one consumer; leat describe job judges by it"),
    NoMetric("rows_per_step",
             "of one consumer; leat describe job judges by it"),
};

// The statistics of the consumer that waits longest.
constexpr FieldMetric kWaitFields[] = {
    NoMetric("count", "of the report's interval"),
    NoMetric("mean_ms", "the quantiles say more"),
    {.field = "p50_ms",
     .name = "leat_job_step_wait_p50_seconds",
     .kind = MetricKind::kGauge,
     .help = "Median time that the trainer waited for a step, over the last "
             "report of the consumer that waits longest.",
     .scale = 1e-3,
     .fold = Fold::kMost},
    {.field = "p95_ms",
     .name = "leat_job_step_wait_p95_seconds",
     .kind = MetricKind::kGauge,
     .help = "95th percentile of the time that the trainer waited for a step, "
             "over the last report of the consumer that waits longest.",
     .scale = 1e-3,
     .fold = Fold::kMost},
    {.field = "max_ms",
     .name = "leat_job_step_wait_max_seconds",
     .kind = MetricKind::kGauge,
     .help = "Longest time that the trainer waited for a step, over the last "
             "report of the consumer that waits longest.",
     .scale = 1e-3,
     .fold = Fold::kMost},
};

constexpr FieldMetric kDatasetFields[] = {
    NoMetric("dataset", "unbounded: leat get datasets"),
    NoMetric("indexed_at", "of one dataset"),
    NoMetric("state", "finding INDEX_FAILED says where a listing failed"),
    NoMetric("failure", "a text"),
    NoMetric("jobs", "names"),
    NoMetric("index_bytes", "of one dataset"),
    NoMetric("looked_at", "of one dataset"),
    NoMetric("looked_entries", "of one dataset"),
    NoMetric("looked_total", "of one dataset"),
    NoMetric("changes", "finding DATASET_CHANGED says it"),
    NoMetric("passed_over", "of one dataset"),
    NoMetric("walked", "of one dataset"),
    NoMetric("walked_total", "of one dataset"),
    NoMetric("files", "the same"),
};

constexpr FieldMetric kPoolFields[] = {
    NoMetric("name", "the label"),
    {"min", "leat_pool_min_workers", MetricKind::kGauge,
     "Workers that the pool has at least."},
    {"max", "leat_pool_max_workers", MetricKind::kGauge,
     "Workers that the pool may have; 0: it is not scaled."},
    {"desired", "leat_pool_desired_workers", MetricKind::kGauge,
     "Workers that should serve; for a pool that is not scaled, those that "
     "do."},
    {"workers", "leat_pool_workers", MetricKind::kGauge,
     "Workers of the pool that are not lost."},
    {"draining", "leat_pool_draining_workers", MetricKind::kGauge,
     "Workers of the pool that own no shards any more."},
    NoMetric("reason", "a text: leat get pools"),
    NoMetric("drain", "names of workers"),
    NoMetric("version", "counts changes of the others"),
    {"demand_rows_per_s", "leat_pool_demand_rows_per_second",
     MetricKind::kGauge,
     "Rows that trainers would take of the pool in a second if they never "
     "waited."},
};

void AddPools(const Coordinator& coordinator, MonotonicTime now,
              MetricPage* page) {
  size_t shown = 0;
  for (const PoolView& view : coordinator.Pools(now))
    if (view.bounds.max > 0 || shown++ < kMaxPoolSeries)
      page->Add(kPoolFields, ToProto(view), {{"pool", view.name}});
}

void AddWorkers(const Coordinator& coordinator, Now now, MetricPage* page) {
  std::array<uint64_t, 4> states{};
  double oldest = 0;
  for (Page at{"", kPage};;) {
    const std::vector<WorkerView> views = coordinator.Workers(at);
    for (const WorkerView& view : views) {
      ++states[static_cast<size_t>(view.state) % states.size()];
      if (view.state == WorkerState::kLost) continue;
      const std::chrono::duration<double> age =
          now.wall - view.last_heartbeat_at;
      oldest = std::max(oldest, age.count());
      v1::WorkerInfo info;
      info.set_threads(view.registration->threads);
      info.set_shards_owned(view.shards_owned);
      page->Add(kWorkerFields, info, {});
      if (view.report.stats != nullptr)
        page->Add(kClusterFields, *view.report.stats, {});
    }
    if (views.size() < at.limit) break;
    at.after = views.back().registration->name;
  }
  for (const auto& [state, name] :
       {std::pair(WorkerState::kReady, "ready"),
        std::pair(WorkerState::kDraining, "draining"),
        std::pair(WorkerState::kLost, "lost")})
    page->Add(kWorkers, {{"state", name}},
              static_cast<double>(states[static_cast<size_t>(state)]));
  page->Add(kLease, {}, oldest);
}

v1::JobSummary NumbersOf(const JobView& view) {
  v1::JobSummary numbers;
  numbers.set_consumers(view.consumers);
  numbers.set_epoch(view.epoch);
  numbers.set_step(view.step);
  numbers.set_steps_per_epoch(view.steps_per_epoch);
  numbers.set_rows_per_s(view.rows_per_s);
  numbers.set_stall_fraction(view.stall_fraction);
  numbers.set_bad_samples_total(view.bad_samples_total);
  numbers.set_bad_samples_different(view.bad_samples_different);
  numbers.set_bad_samples_allowed(view.bad_samples_allowed);
  numbers.set_shared_fraction(view.shared_fraction);
  return numbers;
}

void AddJobs(const Coordinator& coordinator, MetricPage* page) {
  const UsedJobs used = coordinator.JobsInUse(kMaxJobSeries);
  page->Add(kJobs, {}, static_cast<double>(used.of));
  page->Add(kShownJobs, {}, static_cast<double>(used.total));
  std::set<std::string, std::less<>> shown;
  for (const JobView& view : used.first) {
    const std::string& name = view.info->spec.name;
    shown.insert(name);
    page->Add(kJobFields, NumbersOf(view), {{"leat_job", name}});
  }
  uint64_t consumers = 0;
  for (Page at{"", kPage};;) {
    const std::vector<ConsumerView> views = coordinator.Consumers(at);
    consumers += views.size();
    for (const ConsumerView& view : views) {
      if (view.report.stats == nullptr || !shown.contains(view.job)) continue;
      const MetricPage::Labels labels = {{"leat_job", view.job}};
      page->Add(kConsumerStatsFields, *view.report.stats, labels);
      page->Add(kWaitFields, view.report.stats->wait(), labels);
    }
    if (views.size() < at.limit) break;
    at.after = views.back().key;
  }
  page->Add(kConsumers, {}, static_cast<double>(consumers));
}

void AddState(const Coordinator& coordinator, const MetricSources& sources,
              MetricPage* page) {
  page->Add(kSequence, {}, static_cast<double>(coordinator.store().sequence()));
  page->Add(kWritable, {}, sources.state_writable.ok() ? 1 : 0);
  const TimedStore::Times& writes = sources.writes;
  std::vector<MetricPage::Bucket> buckets;
  uint64_t count = 0;
  for (size_t i = 0; i < TimedStore::kSeconds.size(); ++i)
    buckets.push_back({TimedStore::kSeconds[i], count += writes.counts[i]});
  page->AddHistogram(kCommit, {}, std::move(buckets),
                     count + writes.counts.back(), writes.seconds);
  page->Add(kCommitsFailed, {}, static_cast<double>(writes.failed));
}

}  // namespace

std::string MetricsOf(const Coordinator& coordinator,
                      const MetricSources& sources, Now now) {
  MetricPage page;
  for (const rpc::ReportedMessage& reported : ReportedMessages())
    page.Declare(reported.fields);
  rpc::AddDaemon(
      sources.daemon,
      {{"cluster", coordinator.cluster()}, {"daemon", "coordinator"}}, &page);
  AddWorkers(coordinator, now, &page);
  AddPools(coordinator, now.mono, &page);
  AddJobs(coordinator, &page);
  page.Add(kDatasets, {}, static_cast<double>(coordinator.num_datasets()));
  for (const Finding& finding : coordinator.Findings(now))
    if (!finding.muted)
      page.Add(kFindings,
               {{"code", finding.code}, {"severity", finding.severity}}, 1);
  AddState(coordinator, sources, &page);
  return page.Text();
}

std::vector<rpc::ReportedMessage> ReportedMessages() {
  return {{v1::GetStatusResponse::descriptor(), kStatusFields},
          {v1::Finding::descriptor(), kFindingFields},
          {v1::WorkerInfo::descriptor(), kWorkerFields},
          {v1::WorkerStats::descriptor(), kClusterFields},
          {v1::JobSummary::descriptor(), kJobFields},
          {v1::ConsumerInfo::descriptor(), kConsumerFields},
          {v1::ConsumerStats::descriptor(), kConsumerStatsFields},
          {v1::LatencySummary::descriptor(), kWaitFields},
          {v1::DatasetSummary::descriptor(), kDatasetFields},
          {v1::Pool::descriptor(), kPoolFields}};
}

}  // namespace leat::server
