// SPDX-License-Identifier: Apache-2.0
//
// tests/golden/selections.txt: hashes and rows of jobs whose classes have
// shares, by the second implementation in generate.py.
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/plan/job_layout.h"
#include "core/plan/plan.h"
#include "gtest/gtest.h"
#include "tests/core/golden.h"
#include "tests/core/plan/golden_pipeline.h"

namespace leat {
namespace {

struct GoldenJob {
  JobSpec spec;
  DatasetInfo dataset;
};

GoldenJob GoldenJobOf(uint64_t seed, uint32_t batch,
                      const std::vector<uint64_t>& sizes,
                      std::vector<GroupShare> shares) {
  GoldenJob job;
  JobSpec& spec = job.spec;
  spec.pipeline = GoldenPipeline();
  spec.seed = seed;
  spec.batch = batch;
  spec.selection = {.balanced = shares.empty(), .shares = std::move(shares)};
  for (size_t i = 0; i < sizes.size(); ++i)
    job.dataset.groups.push_back({"c" + std::to_string(i), sizes[i]});
  job.dataset.shards =
      ShardTable::Uniform(std::accumulate(sizes.begin(), sizes.end(), 0ull), 16)
          .value();
  std::iota(job.dataset.fingerprint.begin(), job.dataset.fingerprint.end(), 0);
  return job;
}

std::map<std::string, GoldenJob> GoldenJobs() {
  std::map<std::string, GoldenJob> jobs = {
      {"balanced", GoldenJobOf(7, 100, {500, 40, 7, 0, 1300, 1}, {})},
      {"shares", GoldenJobOf(~uint64_t{0}, 64, {30, 1, 70, 9},
                             {{"c0", 0.5}, {"c2", 3}, {"*", 1}})},
      {"seeds", GoldenJobOf(7, 24, {5, 20}, {{"c1", 0.75}, {"c0", 0.25}})}};
  jobs["seeds"].spec.augment_seed = 8;
  return jobs;
}

TEST(Selections, AreThoseOfTheSecondImplementation) {
  const std::map<std::string, GoldenJob> jobs = GoldenJobs();
  size_t hashes = 0, rows = 0;
  for (const auto& line : GoldenLines("selections.txt")) {
    const auto& [spec, dataset] = jobs.at(line[1]);
    const auto number = [&](size_t i) { return std::stoull(line[i]); };
    if (line[0] == "hash") {
      EXPECT_EQ(ToHex(PlanHash(spec, {&dataset, 1})), line[2]) << line[1];
      ++hashes;
      continue;
    }
    const Plan plan(spec, {&dataset, 1});
    if (line[0] == "steps") {
      EXPECT_EQ(plan.steps_per_epoch(), number(2)) << line[1];
      continue;
    }
    const auto row = static_cast<uint32_t>(number(4));
    uint64_t sample = 0;
    plan.Samples(number(2), number(3), {&row, 1}, {&sample, 1});
    EXPECT_EQ(sample, number(5)) << line[1];
    EXPECT_EQ(plan.PassOf(number(2), number(3), row), number(6)) << line[1];
    ++rows;
  }
  EXPECT_EQ(hashes, jobs.size());
  EXPECT_EQ(rows, 60u);
}

}  // namespace
}  // namespace leat
