// SPDX-License-Identifier: Apache-2.0
//
// tests/golden/sample_weights.txt: hashes and rows of jobs whose samples have
// weights, by the second implementation in generate.py.
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/rounded_weight.h"
#include "gtest/gtest.h"
#include "tests/core/golden.h"
#include "tests/core/plan/golden_pipeline.h"

namespace leat {
namespace {

// A job, and the dataset that a listing makes of its weights.
struct WeighedJob {
  JobSpec spec;
  std::map<uint32_t, std::vector<uint64_t>> samples;  // by the weight's key
  std::vector<uint64_t> order;
  DatasetInfo dataset;

  void List() {
    spec.pipeline = GoldenPipeline();
    std::vector<RoundedWeight> weights;
    for (const auto& [key, own] : samples) {
      weights.push_back(RoundedWeight::FromKey(key));
      dataset.groups.push_back({"", own.size()});
      order.insert(order.end(), own.begin(), own.end());
    }
    const std::vector<uint64_t> relative = *RelativeWeights(weights);
    for (size_t i = 0; i < relative.size(); ++i)
      dataset.groups[i].weight = relative[i];
    dataset.shards = ShardTable::Uniform(order.size(), 16).value();
    std::iota(dataset.fingerprint.begin(), dataset.fingerprint.end(), 0);
  }
};

TEST(SampleWeights, AreThoseOfTheSecondImplementation) {
  std::map<std::string, WeighedJob> jobs;
  size_t rows = 0, hashes = 0;
  for (const auto& line : GoldenLines("sample_weights.txt")) {
    WeighedJob& job = jobs[line[1]];
    const auto number = [&](size_t i) { return std::stoull(line[i]); };
    if (line[0] == "seed") {
      job.spec.seed = number(2);
      continue;
    }
    if (line[0] == "batch") {
      job.spec.batch = static_cast<uint32_t>(number(2));
      continue;
    }
    if (line[0] == "weight") {
      const double weight = std::strtod(line[3].c_str(), nullptr);
      const RoundedWeight rounded = RoundedWeight::Of(weight);
      EXPECT_EQ(rounded.value(),
                std::ldexp(std::stod(line[4]), std::stoi(line[5])))
          << weight;
      job.spec.selection.arrangement.weights.list.push_back(weight);
      if (weight > 0) job.samples[rounded.key()].push_back(number(2));
      continue;
    }
    if (job.order.empty()) job.List();
    if (line[0] == "group") {
      EXPECT_EQ(job.dataset.groups[number(2)],
                (Group{"", number(3), number(4)}));
      continue;
    }
    if (line[0] == "hash") {
      EXPECT_EQ(ToHex(PlanHash(job.spec, {&job.dataset, 1})), line[2]);
      ++hashes;
      continue;
    }
    const Plan plan(job.spec, {&job.dataset, 1});
    const auto row = static_cast<uint32_t>(number(4));
    uint64_t sample = 0;
    plan.Samples(number(2), number(3), {&row, 1}, {&sample, 1});
    EXPECT_EQ(job.order[sample], number(5)) << line[1];
    EXPECT_EQ(plan.PassOf(number(2), number(3), row), number(6)) << line[1];
    ++rows;
  }
  EXPECT_EQ(hashes, 3u);
  EXPECT_EQ(rows, 138u);
}

}  // namespace
}  // namespace leat
