// SPDX-License-Identifier: Apache-2.0
//
// Verdicts that need the figures of one job beside those of the workers.
#include <vector>

#include "core/observe/bottleneck.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<WorkerStatistics> IdleWorkers() {
  return {{.name = "w0", .threads = 8, .rows_per_s = 1000, .decoding = 0.1},
          {.name = "w1", .threads = 8, .rows_per_s = 1000, .decoding = 0.1}};
}

// Both workers, with this share.
std::vector<WorkerStatistics> With(double WorkerStatistics::*share,
                                   double value) {
  std::vector<WorkerStatistics> workers = IdleWorkers();
  for (WorkerStatistics& worker : workers) worker.*share = value;
  return workers;
}

// A trainer that waits for both workers equally.
const std::vector<ConsumerStatistics> kWaiting = {{.name = "c",
                                                   .rows_per_s = 2000,
                                                   .waiting = 0.4,
                                                   .ready = 0.1,
                                                   .waited_for = "w0",
                                                   .waited_for_share = 0.55}};

// A worker with a GPU and few threads beside one with many threads.
TEST(JobsBottleneck, TheGpusOrTheThreadsThatMostRowsComeFrom) {
  const auto of = [](double of_gpus, double device, double decoding,
                     double rows_per_s = 1000) {
    std::vector<WorkerStatistics> workers = IdleWorkers();
    workers[0].threads = 2;
    workers[0].device = device;
    workers[1].threads = 30;
    workers[1].decoding = decoding;
    const WorkerStatistics own{.rows_per_s = rows_per_s,
                               .decoding = MeanOf(workers).decoding,
                               .of_gpus = of_gpus};
    return FindBottleneck(workers, kWaiting, &own).limit;
  };
  EXPECT_EQ(of(0.1, 0.98, 0.9), Limit::kDecodeCpu);
  EXPECT_EQ(of(0.3, 0.98, 0.9), Limit::kDecodeCpu);
  EXPECT_EQ(of(0.5, 0.98, 0.9), Limit::kDecodeGpu);
  EXPECT_EQ(of(0.9, 0.98, 0.9), Limit::kDecodeGpu);
  EXPECT_EQ(of(0.9, 0.75, 0.9), Limit::kDecodeGpu) << "threads are busier";
  EXPECT_EQ(of(0.1, 0.98, 0.2), Limit::kDecodeGpu) << "no thread is busy";
  EXPECT_EQ(of(0.9, 0.1, 0.9), Limit::kDecodeCpu) << "no GPU is busy";
  // There are no rows yet: the busier part is the limit.
  EXPECT_EQ(of(0, 0.98, 0.9, 0), Limit::kDecodeGpu);
  EXPECT_EQ(of(0, 0.75, 0.9, 0), Limit::kDecodeCpu);
}

TEST(JobsBottleneck, AQuotaThatBusyThreadsUseUpIsToBeRaised) {
  const std::vector<WorkerStatistics> busy =
      With(&WorkerStatistics::decoding, 0.9);
  const auto with = [&](double used_up) {
    const WorkerStatistics own{.decoding = 0.9, .quota_used_up = used_up};
    return FindBottleneck(busy, kWaiting, &own);
  };
  const Bottleneck found = with(0.97);
  EXPECT_EQ(found.limit, Limit::kDecodeCpu);
  EXPECT_THAT(found.summary, HasSubstr("quota"));
  EXPECT_THAT(found.advice, HasSubstr("raise the quota"));
  EXPECT_THAT(found.advice, Not(HasSubstr("--threads")));
  ASSERT_EQ(found.figures.size(), 3u);
  EXPECT_NEAR(found.figures[2].value, 97, 0.01);
  EXPECT_THAT(with(0.2).advice, HasSubstr("--threads"));
}

TEST(JobsBottleneck, TheSourceThatMostOfTheReadingIsOf) {
  const WorkerStatistics own{.slow_source = "web", .slow_source_share = 0.934};
  const auto of = [&](double WorkerStatistics::*share) {
    return FindBottleneck(With(share, 0.9), kWaiting, &own);
  };
  const Bottleneck waits = of(&WorkerStatistics::for_input);
  EXPECT_EQ(waits.limit, Limit::kStorage);
  EXPECT_EQ(waits.subject, "web");
  EXPECT_THAT(waits.summary,
              HasSubstr("; 93 % of the reading is of source \"web\""));
  const Bottleneck reads = of(&WorkerStatistics::reading);
  EXPECT_EQ(reads.limit, Limit::kStorage);
  EXPECT_EQ(reads.subject, "web");
  const Bottleneck sends = of(&WorkerStatistics::sending);
  EXPECT_EQ(sends.limit, Limit::kNetwork);
  EXPECT_EQ(sends.subject, "");
}

}  // namespace
}  // namespace leat
