// SPDX-License-Identifier: Apache-2.0
#include "worker/metrics.h"

#include <cmath>
#include <utility>

#include "core/observe/stages.h"
#include "worker/image/base/whole_decodes.h"

namespace leat::worker {
namespace {

using rpc::FieldMetric;
using rpc::Metric;
using rpc::MetricKind;
using rpc::MetricPage;
using rpc::NoMetric;

constexpr MetricKind kCounter = MetricKind::kCounter;
constexpr MetricKind kGauge = MetricKind::kGauge;

constexpr Metric kThreads = {"leat_decode_threads", kGauge,
                             "Threads that decode."};
constexpr Metric kOpenDataFiles = {
    "leat_open_data_files", kGauge,
    "Local files of datasets that are open, or are being opened, for all jobs "
    "together."};
constexpr Metric kSession = {
    "leat_session_up", kGauge,
    "1: registered at the coordinator; 0: the worker looks for it."};
constexpr Metric kRowSeconds = {
    "leat_row_seconds", MetricKind::kHistogram,
    "Time of a row, from when it was asked until it was sent."};
constexpr Metric kSpans = {
    "leat_spans_total", kCounter,
    "Spans of traced steps that a collector took, and those that it did not "
    "take, or for which there was no room."};
constexpr Metric kNotReduced = {
    "leat_decodes_not_reduced_total", kCounter,
    "Images of formats without scales, which decode(reduce=\"auto\") decoded "
    "whole."};
// Metrics that several fields share.
constexpr char kSamples[] = "leat_samples_total";
constexpr char kSamplesHelp[] =
    "Rows that were served, and bad samples that were met; the row of a bad "
    "sample is served too where a substitute stands in.";
constexpr char kPeerRecords[] = "leat_peer_records_total";
constexpr char kPeerRecordsHelp[] =
    "Records that other workers were asked for, in place of storage.";
constexpr char kDepth[] = "leat_queue_depth";
constexpr char kDepthHelp[] =
    "Entries of a bounded queue that wait or are in use.";
constexpr char kHits[] = "leat_cache_hits_total";
constexpr char kHitsHelp[] = "Looks into a cache that found what was wanted.";
constexpr char kMisses[] = "leat_cache_misses_total";
constexpr char kMissesHelp[] = "Looks into a cache that found nothing.";
constexpr char kFormAccount[] = "leat_form_account_seconds";
constexpr char kFormAccountHelp[] =
    "Time of decode threads that decoded forms have saved, that was lent "
    "for them, and that making them has taken; saved and lent pay for spent.";
constexpr char kIdleForms[] = "leat_idle_forms_total";
constexpr char kIdleFormsHelp[] =
    "Decoded forms that were made while the worker owed no row, and "
    "those that were given up when a row was asked for.";
constexpr char kCacheBytes[] = "leat_cache_bytes";
constexpr char kCacheBytesHelp[] = "Bytes that a cache holds.";
constexpr char kStageSeconds[] = "leat_stage_seconds_total";
constexpr char kStageSecondsHelp[] =
    "Time of the threads, slots or streams of a stage, by what they did in it: "
    "work, or a wait for the stage before, for room behind, or for a request.";
constexpr char kDeviceRows[] = "leat_device_rows_total";
constexpr char kDeviceRowsHelp[] =
    "Rows that a GPU computed, by what decoded them.";

constexpr FieldMetric kStatsFields[] = {
    NoMetric("rows_per_s", "rate() of leat_samples_total"),
    {"capacity_rows_per_s", "leat_capacity_rows_per_second", kGauge,
     "Rows that the worker could make in a second, as measured; 0: not yet."},
    {"rows_total", kSamples, kCounter, kSamplesHelp, "outcome", "served"},
    {"bytes_sent_total", "leat_bytes_total", kCounter,
     "Bytes of batches that were sent to consumers.", "dir", "sent"},
    {"payload_copies_total", "leat_payload_copies_total", kCounter,
     "Copies of batches' bytes between decoding and socket; 0 is right."},
    {"rows_queued", kDepth, kGauge, kDepthHelp, "queue", "rows"},
    {"streams", "leat_streams", kGauge, "Streams of rows that are open."},
    {"cache_bytes", kCacheBytes, kGauge, kCacheBytesHelp, "cache", "memory"},
    {"cache_limit_bytes", "leat_cache_limit_bytes", kGauge,
     "Bytes that a cache may hold.", "cache", "memory"},
    {"cache_hits_total", kHits, kCounter, kHitsHelp, "cache", "memory"},
    {"cache_misses_total", kMisses, kCounter, kMissesHelp, "cache", "memory"},
    {"buffers_in_use", kDepth, kGauge, kDepthHelp, "queue", "buffers"},
    {"buffers_total", "leat_queue_capacity", kGauge,
     "Entries that a bounded queue may hold.", "queue", "buffers"},
    {"busy_fraction", "leat_decode_busy_ratio", kGauge,
     "Share of their time, 0 to 1, that decode threads were at work since the "
     "last scrape."},
    {"bad_samples_total", kSamples, kCounter, kSamplesHelp, "outcome", "bad"},
    {"row_latency", kRowSeconds.name, kRowSeconds.kind, kRowSeconds.help},
    {"rss_bytes", "leat_resident_memory_bytes", kGauge,
     "Resident memory of the process."},
    NoMetric("devices", "its message has fields of its own"),
    {"rows_placed_total", "leat_rows_placed_total", kCounter,
     "Rows that were written into memory that consumers share."},
    {"shared_memory_bytes", "leat_shared_memory_bytes", kGauge,
     "Bytes of consumers' memory that are mapped."},
    {"storage_requests_total", "leat_storage_requests_total", kCounter,
     "Requests to s3, gs and http."},
    {"storage_retries_total", "leat_storage_retries_total", kCounter,
     "Requests that repeat a failed one, counted in "
     "leat_storage_requests_total."},
    {"storage_hedges_total", "leat_storage_hedges_total", kCounter,
     "Second requests for late ranges, counted in "
     "leat_storage_requests_total."},
    {.field = "forms_saved_ms_total",
     .name = kFormAccount,
     .kind = kGauge,
     .help = kFormAccountHelp,
     .label = "entry",
     .value = "saved",
     .scale = 1e-3},
    {.field = "forms_lent_ms_total",
     .name = kFormAccount,
     .kind = kGauge,
     .help = kFormAccountHelp,
     .label = "entry",
     .value = "lent",
     .scale = 1e-3},
    {.field = "forms_spent_ms_total",
     .name = kFormAccount,
     .kind = kGauge,
     .help = kFormAccountHelp,
     .label = "entry",
     .value = "spent",
     .scale = 1e-3},
    {"idle_forms_made_total", kIdleForms, kCounter, kIdleFormsHelp, "outcome",
     "made"},
    {"idle_forms_given_up_total", kIdleForms, kCounter, kIdleFormsHelp,
     "outcome", "given_up"},
    {.field = "idle_forms_ms_total",
     .name = "leat_idle_form_seconds_total",
     .kind = kCounter,
     .help = "Time of processors that forms have taken while no row was owed.",
     .scale = 1e-3},
    {"idle_forms_waiting", kDepth, kGauge, kDepthHelp, "queue", "forms"},
    {"disk_cache_hits_total", kHits, kCounter, kHitsHelp, "cache", "disk"},
    {"disk_cache_misses_total", kMisses, kCounter, kMissesHelp, "cache",
     "disk"},
    {"disk_cache_bytes", kCacheBytes, kGauge, kCacheBytesHelp, "cache", "disk"},
    {"rows_ahead", kDepth, kGauge, kDepthHelp, "queue", "read_ahead"},
    {"bytes_ahead", "leat_read_ahead_bytes", kGauge,
     "Bytes of records that were read ahead of the decode threads."},
    {"index_bytes", kCacheBytes, kGauge, kCacheBytesHelp, "cache", "index"},
    {"index_blocks_fetched_total", "leat_index_blocks_fetched_total", kCounter,
     "Blocks of indexes that were fetched from the coordinator."},
    {"damaged_streams_total", "leat_damaged_streams_total", kCounter,
     "Streams that were ended, since a request was changed on its way."},
    NoMetric("cached_datasets", "its message has fields of its own"),
    NoMetric("disk_cached_datasets", "its message has fields of its own"),
    NoMetric("stages", "its message has fields of its own"),
    {"rows_shared_total", "leat_rows_shared_total", kCounter,
     "Rows that were computed once for several consumers, except for the "
     "first."},
    {"shared_rows_bytes", kCacheBytes, kGauge, kCacheBytesHelp, "cache",
     "shared_rows"},
    {"quota_periods_total", "leat_quota_periods_total", kCounter,
     "Periods of the processors' quota of the worker's control group, or of "
     "one "
     "above it, whichever used it up most often; 0: there is no quota."},
    {"quota_used_up_total", "leat_quota_used_up_periods_total", kCounter,
     "Those of leat_quota_periods_total in which the quota was used up, so "
     "that threads waited for the next one."},
    NoMetric("job_rows", "the coordinator's, of each job"),
    NoMetric("certificate_expires_at", "leat_cert_expiry_timestamp_seconds"),
    NoMetric("certificate_begins_at", "leat_cert_begin_timestamp_seconds"),
    {"peer_records_found_total", kPeerRecords, kCounter, kPeerRecordsHelp,
     "outcome", "found"},
    {"peer_records_missing_total", kPeerRecords, kCounter, kPeerRecordsHelp,
     "outcome", "missing"},
    {"peer_records_failed_total", kPeerRecords, kCounter, kPeerRecordsHelp,
     "outcome", "failed"},
    {"peer_records_refused_total", kPeerRecords, kCounter, kPeerRecordsHelp,
     "outcome", "refused"},
    {"peer_records_given_total", "leat_peer_records_given_total", kCounter,
     "Records that other workers were given."},
    NoMetric("storage_waits", "texts: leat describe worker"),
};

constexpr FieldMetric StageTime(std::string_view field,
                                std::string_view value) {
  return {.field = field,
          .name = kStageSeconds,
          .kind = kCounter,
          .help = kStageSecondsHelp,
          .label = "state",
          .value = value,
          .scale = 1e-9};
}

constexpr FieldMetric kStageFields[] = {
    NoMetric("stage", "the label"),
    {"places", "leat_stage_places", kGauge,
     "Threads, slots or streams that may be in a stage at the same time."},
    {"items_total", "leat_stage_items_total", kCounter,
     "Records, rows or groups that entered a stage."},
    StageTime("busy_ns_total", "busy"),
    StageTime("input_ns_total", "input"),
    StageTime("output_ns_total", "output"),
    StageTime("idle_ns_total", "idle"),
    {"queue_depth", "leat_stage_queue_depth", kGauge,
     "Entries that wait in front of a stage."},
    {"queue_capacity", "leat_stage_queue_capacity", kGauge,
     "Entries that may wait in front of a stage; 0: it has no bound of its "
     "own."},
};

constexpr FieldMetric kDeviceFields[] = {
    NoMetric("index", "the label"),
    {"slots", "leat_device_slots", kGauge,
     "Groups of rows that may be on a GPU at the same time."},
    {"slots_in_use", "leat_device_slots_in_use", kGauge,
     "Groups of rows that are on a GPU."},
    {"memory_bytes", "leat_device_memory_bytes", kGauge,
     "Memory of a GPU that the worker holds."},
    {"busy_fraction", "leat_device_busy_ratio", kGauge,
     "Share of the time, 0 to 1, with a group on a GPU since the last scrape."},
    {"groups_total", "leat_device_groups_total", kCounter,
     "Groups of rows that a GPU computed."},
    {"groups_failed_total", "leat_device_groups_failed_total", kCounter,
     "Groups of rows that failed on a GPU."},
    {"rows_exact_total", kDeviceRows, kCounter, kDeviceRowsHelp, "decoder",
     "exact"},
    {"rows_hardware_total", kDeviceRows, kCounter, kDeviceRowsHelp, "decoder",
     "hardware"},
    {"rows_cuda_total", kDeviceRows, kCounter, kDeviceRowsHelp, "decoder",
     "cuda"},
    {"rows_host_total", kDeviceRows, kCounter, kDeviceRowsHelp, "decoder",
     "host"},
    {"splits_total", "leat_device_splits_total", kCounter,
     "Groups of rows that were halved for want of memory."},
    {"rows_coefficients_total", "leat_device_coefficient_rows_total", kCounter,
     "Rows of class exact whose pixels a GPU made of coefficients."},
    {"rows_codes_total", "leat_device_code_rows_total", kCounter,
     "Rows of class exact whose Huffman codes a GPU decoded, too."},
};

constexpr FieldMetric kDatasetFields[] = {
    NoMetric("dataset", "the label"),
    NoMetric("dataset_id", "the label is its name"),
    {"bytes", "leat_cache_dataset_bytes", kGauge,
     "Bytes of a dataset that a cache holds; datasets with most, 32 at most."},
    {"entries", "leat_cache_dataset_entries", kGauge,
     "Records, or ranges of objects, of a dataset that a cache holds."},
    {"hits_total", "leat_cache_dataset_hits_total", kCounter,
     "Looks for a dataset's records that a cache answered."},
    {"misses_total", "leat_cache_dataset_misses_total", kCounter,
     "Looks for a dataset's records that a cache could not answer."},
    NoMetric("forms", "its message has fields of its own"),
};

constexpr FieldMetric kFormFields[] = {
    NoMetric("form", "the label"),
    {"bytes", "leat_cache_form_bytes", kGauge,
     "Bytes of forms of a dataset's JPEG files that a cache holds."},
    {"entries", "leat_cache_form_entries", kGauge,
     "Records whose decoded form a cache holds."},
    {"hits_total", "leat_cache_form_hits_total", kCounter,
     "Decodes by a form."},
    {.field = "saved_ms_total",
     .name = "leat_cache_form_saved_seconds_total",
     .kind = kCounter,
     .help = "Time of decode threads that forms saved, by the mean time of "
             "decodes without one.",
     .scale = 1e-3},
};

constexpr std::string_view kInHistogram = "leat_row_seconds has it";

constexpr FieldMetric kLatencyFields[] = {
    NoMetric("count", kInHistogram),  NoMetric("mean_ms", kInHistogram),
    NoMetric("p50_ms", kInHistogram), NoMetric("p95_ms", kInHistogram),
    NoMetric("max_ms", kInHistogram),
};

// Adds one bucket per doubling, from a millisecond to a minute; the first
// counts shorter times too, and longer ones appear only in the count.
void AddLatency(const Histogram::Snapshot& latency, MetricPage* page) {
  constexpr int kFirst = 10, kLast = 26;  // powers of two, in microseconds
  static_assert(kLast * Histogram::kSteps < Histogram::kBuckets);
  std::vector<MetricPage::Bucket> buckets;
  uint64_t count = 0;
  int next = 0;
  for (int power = kFirst; power <= kLast; ++power) {
    for (; next <= power * Histogram::kSteps; ++next)
      count += latency.counts[next];
    buckets.push_back({std::exp2(power) / 1e6, count});
  }
  for (; next < Histogram::kBuckets; ++next) count += latency.counts[next];
  page->AddHistogram(kRowSeconds, {}, std::move(buckets), count,
                     static_cast<double>(latency.sum_ns) / 1e9);
}

void AddDatasets(
    const std::string& cache,
    const google::protobuf::RepeatedPtrField<v1::CachedDataset>& datasets,
    MetricPage* page) {
  for (const v1::CachedDataset& dataset : datasets) {
    page->Add(kDatasetFields, dataset,
              {{"cache", cache}, {"dataset", dataset.dataset()}});
    for (const v1::CachedForm& form : dataset.forms())
      page->Add(kFormFields, form,
                {{"dataset", dataset.dataset()}, {"form", form.form()}});
  }
}

}  // namespace

std::string MetricsOf(const MetricSources& sources) {
  MetricPage page;
  for (const rpc::ReportedMessage& reported : ReportedMessages())
    page.Declare(reported.fields);
  rpc::AddDaemon(sources.daemon, {{"daemon", "worker"}}, &page);
  page.Add(kThreads, {}, static_cast<double>(sources.threads));
  page.Add(kOpenDataFiles, {}, static_cast<double>(sources.open_data_files));
  page.Add(kSession, {}, sources.in_session ? 1 : 0);
  page.Add(kStatsFields, sources.stats, {});
  AddLatency(sources.latency, &page);
  for (const v1::DeviceStats& device : sources.stats.devices())
    page.Add(kDeviceFields, device,
             {{"device", std::to_string(device.index())}});
  for (const v1::StageStats& stage : sources.stats.stages())
    page.Add(kStageFields, stage,
             {{"stage", std::string(Name(static_cast<Stage>(stage.stage())))}});
  AddDatasets("memory", sources.stats.cached_datasets(), &page);
  AddDatasets("disk", sources.stats.disk_cached_datasets(), &page);
  page.Add(kSpans, {{"outcome", "exported"}},
           static_cast<double>(sources.spans.exported));
  page.Add(kSpans, {{"outcome", "dropped"}},
           static_cast<double>(sources.spans.dropped));
  for (size_t i = 0; i < kImageFormats && sources.whole_decodes; ++i) {
    const auto format = static_cast<ImageFormat>(i);
    page.Add(kNotReduced, {{"format", std::string(Name(format))}},
             static_cast<double>(sources.whole_decodes->of(format)));
  }
  return page.Text();
}

std::vector<rpc::ReportedMessage> ReportedMessages() {
  return {{v1::WorkerStats::descriptor(), kStatsFields},
          {v1::DeviceStats::descriptor(), kDeviceFields},
          {v1::StageStats::descriptor(), kStageFields},
          {v1::CachedDataset::descriptor(), kDatasetFields},
          {v1::CachedForm::descriptor(), kFormFields},
          {v1::LatencySummary::descriptor(), kLatencyFields}};
}

}  // namespace leat::worker
