// SPDX-License-Identifier: Apache-2.0
//
// A worker's metrics for Prometheus have every field of its heartbeats'
// statistics.
#include "worker/metrics.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/field_metrics.h"
#include "worker/image/base/whole_decodes.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(WorkerMetrics, HaveEveryFieldThatIsReported) {
  for (const rpc::ReportedMessage& reported : ReportedMessages())
    EXPECT_EQ(FieldTrouble(*reported.message, reported.fields), "");
}

TEST(WorkerMetrics, ShowCachesDevicesAndDatasets) {
  MetricSources sources;
  sources.stats.set_rows_total(7);
  sources.stats.set_bad_samples_total(2);
  sources.stats.set_cache_hits_total(3);
  sources.stats.set_disk_cache_hits_total(4);
  sources.stats.set_forms_saved_ms_total(2500);
  sources.stats.set_forms_spent_ms_total(500);
  sources.stats.set_idle_forms_made_total(9);
  sources.stats.set_idle_forms_ms_total(1500);
  sources.stats.set_index_bytes(5);
  v1::DeviceStats& device = *sources.stats.add_devices();
  device.set_index(1);
  device.set_rows_host_total(6);
  v1::CachedDataset& dataset = *sources.stats.add_cached_datasets();
  dataset.set_dataset("cats");
  dataset.set_bytes(8);
  v1::CachedForm& form = *dataset.add_forms();
  form.set_form("coefficients");
  form.set_saved_ms_total(1500);
  v1::StageStats& stage = *sources.stats.add_stages();
  stage.set_stage(v1::STAGE_DECODE);
  stage.set_busy_ns_total(2'000'000'000);
  sources.open_data_files = 13;
  sources.spans = {.exported = 11, .dropped = 12};
  WholeDecodes whole;
  whole.Count(ImageFormat::kPng);
  sources.whole_decodes = &whole;
  const std::string page = MetricsOf(sources);
  for (const char* line :
       {"leat_samples_total{outcome=\"served\"} 7\n",
        "leat_samples_total{outcome=\"bad\"} 2\n",
        "leat_cache_hits_total{cache=\"memory\"} 3\n",
        "leat_cache_hits_total{cache=\"disk\"} 4\n",
        "leat_cache_bytes{cache=\"index\"} 5\n",
        "leat_form_account_seconds{entry=\"saved\"} 2.5\n",
        "leat_form_account_seconds{entry=\"spent\"} 0.5\n",
        "leat_idle_forms_total{outcome=\"made\"} 9\n",
        "leat_idle_form_seconds_total 1.5\n",
        "leat_device_rows_total{device=\"1\",decoder=\"host\"} 6\n",
        "leat_cache_dataset_bytes{cache=\"memory\",dataset=\"cats\"} 8\n",
        "leat_cache_form_saved_seconds_total{dataset=\"cats\",form="
        "\"coefficients\"} 1.5\n",
        "leat_stage_seconds_total{stage=\"decode\",state=\"busy\"} 2\n",
        "leat_spans_total{outcome=\"exported\"} 11\n",
        "leat_spans_total{outcome=\"dropped\"} 12\n",
        "leat_open_data_files 13\n",
        "leat_session_up 0\n",
        "leat_decodes_not_reduced_total{format=\"png\"} 1\n",
        "leat_decodes_not_reduced_total{format=\"webp\"} 0\n",
        "leat_listener_up 1\n"})
    EXPECT_THAT(page, HasSubstr(line));
  EXPECT_THAT(page, Not(HasSubstr("\nleat_cert_expiry")));
  EXPECT_THAT(page, HasSubstr("# TYPE leat_cert_expiry_timestamp_seconds"));
  EXPECT_THAT(page, Not(HasSubstr("\nleat_cert_begin")));
  EXPECT_THAT(page, HasSubstr("# TYPE leat_cert_begin_timestamp_seconds"));
}

TEST(WorkerMetrics, ShowTheTimesOfRows) {
  Histogram histogram;
  histogram.Add(std::chrono::microseconds(100));
  histogram.Add(std::chrono::microseconds(1500), 2);
  histogram.Add(std::chrono::hours(1));
  MetricSources sources;
  sources.latency = histogram.snapshot();
  const std::string page = MetricsOf(sources);
  for (const char* line : {"leat_row_seconds_bucket{le=\"0.001024\"} 1\n",
                           "leat_row_seconds_bucket{le=\"0.002048\"} 3\n",
                           "leat_row_seconds_bucket{le=\"67.108864\"} 3\n",
                           "leat_row_seconds_bucket{le=\"+Inf\"} 4\n",
                           "leat_row_seconds_count 4\n"})
    EXPECT_THAT(page, HasSubstr(line));
}

}  // namespace
}  // namespace leat::worker
