// SPDX-License-Identifier: Apache-2.0
#include "worker/session/slowest_sources.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace leat::worker {
namespace {

std::vector<std::pair<uint32_t, uint64_t>> Reported(
    SlowestSources* of, const SlowestSources::Times& now) {
  v1::WorkerStats stats;
  stats.add_job_rows()->set_job("mix");
  of->Add(now, &stats);
  std::vector<std::pair<uint32_t, uint64_t>> reported;
  for (const v1::SourceReads& each : stats.job_rows(0).slowest_sources())
    reported.emplace_back(each.source(), each.storage_ns_total());
  return reported;
}

TEST(SlowestSources, AreFewAndThoseThatTookTheMostLately) {
  SlowestSources sources;
  std::vector<uint64_t> times(1000, 5);
  times[3] = 900;
  times[700] = 800;
  const auto first = Reported(&sources, {{"mix", times}});
  EXPECT_EQ(first.size(), SlowestSources::kReported);
  EXPECT_EQ(first[0], std::pair(3u, uint64_t{900}));
  for (int i = 0; i < 20; ++i) {
    times[20] += 70;
    times[700] += 50;
    Reported(&sources, {{"mix", times}});
  }
  const auto later = Reported(&sources, {{"mix", times}});
  EXPECT_EQ(later[0], std::pair(20u, uint64_t{1405}));
  EXPECT_EQ(later[1], std::pair(700u, uint64_t{1800}));
  EXPECT_TRUE(Reported(&sources, {{"another", times}}).empty());
}

// A read of a second counts when it ends.
TEST(SlowestSources, AreNamedAlsoInReportsInWhichNoneOfTheirReadsEnded) {
  SlowestSources sources;
  std::vector<uint64_t> times(1000, 0);
  for (int report = 0; report < 10; ++report) {
    for (size_t i = 0; i < times.size(); ++i) times[i] += i % 7;
    if (report % 3 == 0) times[500] += 3000;
    EXPECT_EQ(Reported(&sources, {{"mix", times}})[0].first, 500u) << report;
  }
}

}  // namespace
}  // namespace leat::worker
