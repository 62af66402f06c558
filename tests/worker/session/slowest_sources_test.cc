// SPDX-License-Identifier: Apache-2.0
#include "worker/session/slowest_sources.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::vector<std::pair<uint32_t, uint64_t>> Reported(SlowestSources* of,
                                                    SlowestSources::Times now) {
  v1::WorkerStats stats;
  stats.add_job_rows()->set_job("mix");
  of->Add(std::move(now), &stats);
  std::vector<std::pair<uint32_t, uint64_t>> reported;
  for (const v1::SourceReads& each : stats.job_rows(0).slowest_sources())
    reported.emplace_back(each.source(), each.storage_ns_total());
  return reported;
}

TEST(SlowestSources, AreFewAndThoseThatTookTheMostSinceTheLastReport) {
  SlowestSources sources;
  std::vector<uint64_t> times(1000, 5);
  times[3] = 900;
  times[700] = 800;
  const auto first = Reported(&sources, {{"mix", times}});
  EXPECT_EQ(first.size(), SlowestSources::kReported);
  EXPECT_EQ(first[0], std::pair(3u, uint64_t{900}));
  times[700] += 50;
  times[20] += 70;
  EXPECT_THAT(Reported(&sources, {{"mix", times}}),
              ElementsAre(Pair(20, 75), Pair(700, 850)));
  EXPECT_THAT(Reported(&sources, {{"mix", times}}), IsEmpty());
  EXPECT_THAT(Reported(&sources, {{"another", times}}), IsEmpty());
}

}  // namespace
}  // namespace leat::worker
