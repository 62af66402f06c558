// SPDX-License-Identifier: Apache-2.0
#include "core/observe/worker_statistics.h"

#include "gtest/gtest.h"

namespace leat {
namespace {

TEST(WorkerStatistics, AMeanIsWeightedByThreadsAndOfGpusByWorkers) {
  const std::vector<WorkerStatistics> workers = {
      {.name = "a", .threads = 6, .rows_per_s = 10, .decoding = 0.5},
      {.name = "b", .threads = 2, .rows_per_s = 5, .reading = 0.4},
      {.name = "c", .workers = 3, .threads = 0, .device = 0.8}};
  const WorkerStatistics all = MeanOf(workers);
  EXPECT_EQ(all.threads, 9) << "a worker has a thread";
  EXPECT_EQ(all.rows_per_s, 15);
  EXPECT_NEAR(BusyShare(all), (6 * 0.5 + 2 * 0.4) / 9, 1e-9);
  EXPECT_NEAR(all.device, 0.8, 1e-9);
  const WorkerStatistics others = MeanOf(workers, "c");
  EXPECT_EQ(others.threads, 8);
  EXPECT_EQ(others.device, -1) << "none has a GPU";
}

}  // namespace
}  // namespace leat
