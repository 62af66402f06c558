// SPDX-License-Identifier: Apache-2.0
#include "server/observe/job_statistics.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/observe/history.h"

namespace leat::server {
namespace {

using std::chrono::seconds;

constexpr MonotonicTime kBegin{seconds(1000)};
constexpr uint64_t kSecond = 1'000'000'000;

// A worker's report `second` seconds after it began.
struct Reporter {
  double threads_busy = 0, gpu_busy = -1;  // below 0: it has no GPU
  double reads = 0;                        // of the decode threads' time
  uint64_t rows_per_s = 0;
  uint64_t quota_used_up_per_s = 0;  // of 10 periods
  // Per second of a job's time: that storage took for each source.
  std::vector<std::pair<uint32_t, double>> sources = {};

  v1::WorkerStats At(uint64_t second) const {
    v1::WorkerStats stats;
    const auto add = [&](v1::Stage stage, uint32_t places, double busy) {
      v1::StageStats& of = *stats.add_stages();
      of.set_stage(stage);
      of.set_places(places);
      of.set_busy_ns_total(static_cast<uint64_t>(
          busy * static_cast<double>(second * kSecond * places)));
    };
    add(v1::STAGE_DECODE, 4, threads_busy);
    add(v1::STAGE_READ, 4, reads);
    if (gpu_busy >= 0) add(v1::STAGE_DEVICE, 2, gpu_busy);
    stats.set_quota_periods_total(10 * second);
    stats.set_quota_used_up_total(quota_used_up_per_s * second);
    v1::JobRows& job = *stats.add_job_rows();
    job.set_job("j");
    job.set_rows_total(rows_per_s * second);
    for (const auto& [number, share] : sources) {
      const auto ns =
          static_cast<uint64_t>(share * static_cast<double>(second * kSecond));
      job.set_storage_ns_total(job.storage_ns_total() + ns);
      v1::SourceReads& reads = *job.add_slowest_sources();
      reads.set_source(number);
      reads.set_storage_ns_total(ns);
    }
    return stats;
  }
};

// Returns the mean of what they did for the job in ten seconds.
WorkerStatistics MeanOf(const std::vector<Reporter>& workers) {
  JobStatistics statistics;
  WaitsBySlot waits;
  for (uint64_t second = 0; second <= 10; second += 2) {
    const MonotonicTime now = kBegin + seconds(second);
    for (size_t i = 0; i < workers.size(); ++i)
      statistics.Note("w" + std::to_string(i), workers[i].At(second), now);
    waits[History::SlotOf(now)] = 0.5;
  }
  const auto mean =
      statistics.Mean("j", waits, [](uint32_t n) { return std::to_string(n); });
  EXPECT_TRUE(mean.has_value());
  return mean.value_or(WorkerStatistics{});
}

TEST(JobStatistics, WeighsGpusByTheRowsThatTheirWorkersMade) {
  const auto of = [](uint64_t gpu_rows, uint64_t other_rows, double threads) {
    const WorkerStatistics mean = MeanOf(
        {{.threads_busy = threads, .gpu_busy = 0.9, .rows_per_s = gpu_rows},
         {.threads_busy = 0.95, .rows_per_s = other_rows}});
    EXPECT_NEAR(mean.rows_per_s, gpu_rows + other_rows, 0.1);
    return mean.of_gpus;
  };
  EXPECT_NEAR(of(10, 90, 0.2), 0.1, 0.001);
  EXPECT_NEAR(of(50, 50, 0.2), 0.5, 0.001);
  EXPECT_NEAR(of(90, 10, 0.2), 0.9, 0.001);
  // The GPU waits for the worker's threads, which decode or read.
  EXPECT_EQ(of(90, 10, 0.98), 0);
  EXPECT_EQ(MeanOf({{.threads_busy = 0.2,
                     .gpu_busy = 0.8,
                     .reads = 0.7,
                     .rows_per_s = 9}})
                .of_gpus,
            0);
}

TEST(JobStatistics, HasTheShareOfPeriodsInWhichAQuotaIsUsedUp) {
  EXPECT_NEAR(
      MeanOf({{.rows_per_s = 9, .quota_used_up_per_s = 9}}).quota_used_up, 0.9,
      0.001);
  EXPECT_EQ(MeanOf({{.rows_per_s = 9}}).quota_used_up, 0);
}

TEST(JobStatistics, NamesTheSourceThatTookMostOfTheTimeOfStorage) {
  const WorkerStatistics mean =
      MeanOf({{.rows_per_s = 9, .sources = {{7, 3.0}, {2, 0.5}}},
              {.rows_per_s = 9, .sources = {{7, 1.5}}}});
  EXPECT_EQ(mean.slow_source, "7");
  EXPECT_NEAR(mean.slow_source_share, 0.9, 0.001);
  EXPECT_EQ(
      MeanOf({{.rows_per_s = 9, .sources = {{7, 1.0}, {2, 1.0}}}}).slow_source,
      "");
  EXPECT_EQ(MeanOf({{.rows_per_s = 9}}).slow_source, "");
}

}  // namespace
}  // namespace leat::server
