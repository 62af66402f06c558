// SPDX-License-Identifier: Apache-2.0
#include "core/plan/job_layout.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/plan/checked_job.h"
#include "core/plan/plan.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

constexpr double kBound = 1.68;  // share_tree.h

Graph PipelineOver(const std::string& path) {
  Graph graph;
  graph.nodes = {{"readers.image_folder", {}, {{"path", path}}},
                 {"decode", {{0, 0}}, {}},
                 {"resize", {{1, 0}}, {{"size", std::vector<int64_t>{8, 8}}}}};
  graph.outputs = {{"image", {2, 0}}, {"label", {0, 1}}};
  return graph;
}

JobSpec Balanced(uint32_t batch) {
  JobSpec spec{.name = "balanced", .pipeline = PipelineOver("/data")};
  spec.seed = 7;
  spec.batch = batch;
  spec.selection.balanced = true;
  return spec;
}

DatasetInfo DatasetOf(const std::vector<uint64_t>& sizes) {
  DatasetInfo dataset{.name = "data"};
  for (const uint64_t size : sizes)
    dataset.groups.push_back(
        {"c" + std::to_string(dataset.groups.size()), size});
  const uint64_t samples = std::accumulate(sizes.begin(), sizes.end(), 0ull);
  dataset.shards = ShardTable::Uniform(samples, 16).value();
  return dataset;
}

std::vector<uint64_t> StepOf(const Plan& plan, uint64_t epoch, uint64_t step) {
  std::vector<uint32_t> rows(plan.batch());
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<uint64_t> samples(rows.size());
  plan.Samples(epoch, step, rows, samples);
  return samples;
}

// Counts how often each sample came, and checks the shares after each step.
class Counter {
 public:
  Counter(const DatasetInfo& dataset, std::vector<double> shares)
      : shares_(std::move(shares)), times_(dataset.shards.num_samples()) {
    for (const Group& group : dataset.groups)
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + group.samples);
    rows_.resize(ends_.size());
  }
  void Add(uint64_t sample) {
    ++times_[sample];
    ++rows_[std::ranges::upper_bound(ends_, sample) - ends_.begin()];
    ++all_;
  }
  void Check() const {
    for (size_t i = 0; i < rows_.size(); ++i) {
      ASSERT_LE(std::abs(static_cast<double>(rows_[i]) -
                         static_cast<double>(all_) * shares_[i]),
                kBound)
          << "group " << i << " after " << all_ << " rows";
      const auto begin =
          times_.begin() + static_cast<int64_t>(i == 0 ? 0 : ends_[i - 1]);
      const auto end = times_.begin() + static_cast<int64_t>(ends_[i]);
      if (begin == end) continue;
      const auto [least, most] = std::minmax_element(begin, end);
      ASSERT_LE(*most - *least, 1u) << "group " << i << " after " << all_;
    }
  }

 private:
  std::vector<double> shares_;
  std::vector<uint64_t> times_, ends_, rows_;
  uint64_t all_ = 0;
};

void ExpectHolds(const JobSpec& spec, const DatasetInfo& dataset,
                 const std::vector<double>& shares) {
  ASSERT_TRUE(CheckAgainst(spec, {&dataset, 1}).ok())
      << CheckAgainst(spec, {&dataset, 1});
  const Plan plan(spec, {&dataset, 1});
  const uint64_t samples = dataset.shards.num_samples();
  EXPECT_EQ(plan.steps_per_epoch(), samples / spec.batch);
  Counter counter(dataset, shares);
  for (uint64_t epoch = 0; epoch < 3; ++epoch)
    for (uint64_t step = 0; step < plan.steps_per_epoch(); ++step) {
      for (const uint64_t sample : StepOf(plan, epoch, step))
        counter.Add(sample);
      counter.Check();
    }
}

TEST(JobLayout, ClassesAreInBalanceAfterEveryStep) {
  const DatasetInfo dataset = DatasetOf({500, 40, 7, 0, 1300, 1});
  const std::vector<double> even = {.2, .2, .2, 0, .2, .2};
  for (const uint32_t batch : {1u, 7u, 64u, 200u})
    for (const Order order :
         {Order::kSequential, Order::kGlobalShuffle, Order::kShardShuffle}) {
      JobSpec spec = Balanced(batch);
      spec.order = order;
      ExpectHolds(spec, dataset, even);
    }
}

TEST(JobLayout, ClassesHaveTheirSharesAfterEveryStep) {
  JobSpec spec = Balanced(30);
  spec.selection = {.balanced = false,
                    .shares = {{"c4", 0}, {"c1", 5}, {"*", 3}, {"c0", 2}}};
  ExpectHolds(spec, DatasetOf({100, 40, 7, 0, 9, 30}),
              {.2, .5, .15, 0, 0, .15});
}

TEST(JobLayout, AStreamGoesOnAsEpochsDo) {
  const DatasetInfo dataset = DatasetOf({50, 7, 30});
  const Plan epochs(Balanced(16), {&dataset, 1});
  JobSpec spec = Balanced(16);
  spec.last_batch = LastBatch::kStream;
  const Plan stream(spec, {&dataset, 1});
  EXPECT_EQ(epochs.steps_per_epoch(), 5u);
  EXPECT_EQ(stream.steps_per_epoch(), kStreamSteps);
  EXPECT_FALSE(stream.CheckEpoch(1).ok());
  EXPECT_TRUE(epochs.CheckEpoch(9).ok());
  for (uint64_t step = 0; step < 20; ++step) {
    EXPECT_EQ(StepOf(stream, 0, step), StepOf(epochs, step / 5, step % 5));
    for (uint32_t row = 0; row < 16; ++row)
      EXPECT_EQ(stream.PassOf(0, step, row),
                epochs.PassOf(step / 5, step % 5, row));
  }
}

TEST(JobLayout, HostsHavePartsOfTheSameBatch) {
  const DatasetInfo dataset = DatasetOf({300, 20, 11});
  const Plan plan(Balanced(96), {&dataset, 1});
  for (uint64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    const std::vector<uint64_t> all = StepOf(plan, 0, step);
    for (const uint32_t hosts : {1u, 2u, 3u, 4u})
      for (uint32_t host = 0; host < hosts; ++host) {
        std::vector<uint32_t> rows;
        for (uint32_t row = 96; row-- > 0;)  // in any order
          if (row % hosts == host) rows.push_back(row);
        std::vector<uint64_t> samples(rows.size());
        plan.Samples(0, step, rows, samples);
        for (size_t i = 0; i < rows.size(); ++i)
          ASSERT_EQ(samples[i], all[rows[i]]);
      }
  }
}

// Passes number the draws, so no sample may have the same number twice.
TEST(JobLayout, ASampleNeverComesTwiceInOnePass) {
  const DatasetInfo dataset = DatasetOf({60, 4, 1});
  const Plan plan(Balanced(10), {&dataset, 1});
  std::set<std::pair<uint64_t, uint64_t>> seen;
  for (uint64_t epoch = 0; epoch < 4; ++epoch)
    for (uint64_t step = 0; step < plan.steps_per_epoch(); ++step) {
      const std::vector<uint64_t> samples = StepOf(plan, epoch, step);
      for (uint32_t row = 0; row < samples.size(); ++row)
        EXPECT_TRUE(
            seen.insert({samples[row], plan.PassOf(epoch, step, row)}).second);
    }
}

JobSpec MixtureOf(const JobSpec& one, MixEnd ends) {
  JobSpec spec = one;
  spec.sources = {
      {.name = "a", .pipeline = PipelineOver("/a"), .selection = {}},
      {.name = "b",
       .pipeline = PipelineOver("/b"),
       .selection = one.selection}};
  spec.pipeline = {};
  spec.selection = {};
  spec.shares = {{0, {3, 1}}};
  spec.mix_end = ends;
  spec.last_batch =
      ends == MixEnd::kStream ? LastBatch::kStream : LastBatch::kDrop;
  return spec;
}

// The rows of a source of a mixture are those of a job of its own.
TEST(JobLayout, AMembersClassesAreInBalanceInAMixture) {
  const std::vector<DatasetInfo> datasets = {DatasetOf({80}),
                                             DatasetOf({30, 2, 9})};
  const JobSpec spec = MixtureOf(Balanced(20), MixEnd::kStream);
  ASSERT_TRUE(CheckAgainst(spec, datasets).ok());
  const Plan plan(spec, datasets);
  JobSpec own = Balanced(1);
  own.seed = SourceSeed(spec.seed, 1);
  own.last_batch = LastBatch::kStream;
  const Plan alone(own, {&datasets[1], 1});
  Counter counter(datasets[1], std::vector<double>(3, 1.0 / 3));
  std::multiset<uint64_t> got, want;
  for (uint64_t step = 0; step < 40; ++step) {
    for (const uint64_t sample : StepOf(plan, 0, step)) {
      if (sample < 80) continue;
      counter.Add(sample - 80);
      want.insert(StepOf(alone, 0, got.size())[0]);
      got.insert(sample - 80);
    }
    counter.Check();
    ASSERT_EQ(got, want) << step;
  }
}

TEST(JobLayout, AnEpochOfAMixtureCountsRowsAndNotGroups) {
  const std::vector<DatasetInfo> datasets = {DatasetOf({80}),
                                             DatasetOf({30, 2, 9})};
  EXPECT_EQ(
      Plan(MixtureOf(Balanced(20), MixEnd::kFirst), datasets).steps_per_epoch(),
      5u);  // 75 rows of 80; 25 of 41
  EXPECT_EQ(
      Plan(MixtureOf(Balanced(20), MixEnd::kAll), datasets).steps_per_epoch(),
      9u);  // 45 rows of 41
}

TEST(JobLayout, ASubstituteIsOfTheSameGroup) {
  const DatasetInfo dataset = DatasetOf({5, 3, 1});
  const Plan plan(Balanced(3), {&dataset, 1});
  for (uint64_t sample = 0; sample < 9; ++sample) {
    const auto group = [](uint64_t s) { return s < 5 ? 0 : s < 8 ? 1 : 2; };
    std::set<uint64_t> substitutes;
    for (uint32_t i = 0; i < 4; ++i) {
      const uint64_t other = plan.Substitute(0, sample, i);
      EXPECT_EQ(group(other), group(sample));
      EXPECT_EQ(other == sample, sample == 8);
      substitutes.insert(other);
    }
    EXPECT_EQ(substitutes.size(), sample < 5 ? 4u : sample < 8 ? 2u : 1u);
  }
}

TEST(JobLayout, OfWeightsOfSamplesASubstituteIsAnySample) {
  DatasetInfo dataset = DatasetOf({1, 3});
  dataset.groups[0].weight = 512;
  dataset.groups[1].weight = 700;
  JobSpec spec = Balanced(2);
  spec.selection = {.arrangement = {.weights = {.uri = "/w.npy"}}};
  const Plan plan(spec, {&dataset, 1});
  EXPECT_EQ(plan.steps_per_epoch(), 2u);
  for (uint64_t sample = 0; sample < 4; ++sample) {
    std::set<uint64_t> substitutes;
    for (uint32_t i = 0; i < 3; ++i)
      substitutes.insert(plan.Substitute(0, sample, i));
    EXPECT_EQ(substitutes.size(), 3u);
    EXPECT_FALSE(substitutes.contains(sample));
  }
}

TEST(JobLayout, TheSeedOfOperatorsMovesNoRow) {
  const DatasetInfo dataset = DatasetOf({50, 30});
  JobSpec spec = Balanced(16), plain = Balanced(16);
  plain.selection = {};
  for (JobSpec* each : {&spec, &plain}) {
    const Plan before(*each, {&dataset, 1});
    each->augment_seed = 8;
    const Plan after(*each, {&dataset, 1});
    uint32_t moved = 0;
    for (uint64_t step = 0; step < 5; ++step) {
      EXPECT_EQ(StepOf(before, 0, step), StepOf(after, 0, step));
      moved += before.PartnerOf(0, step, 3) != after.PartnerOf(0, step, 3);
    }
    EXPECT_GT(moved, 0u);  // a partner is an operator's draw
  }
  EXPECT_EQ(AugmentSeedOf(spec, 0), 8u);
  EXPECT_EQ(AugmentSeedOf(Balanced(1), 0), 7u);
  JobSpec mixture = MixtureOf(Balanced(20), MixEnd::kStream);
  EXPECT_EQ(AugmentSeedOf(mixture, 1), SourceSeed(7, 1));
  mixture.augment_seed = 8;
  EXPECT_EQ(AugmentSeedOf(mixture, 1), SourceSeed(8, 1));
}

std::string AgainstError(const JobSpec& spec,
                         const std::vector<DatasetInfo>& datasets) {
  return std::string(Message(CheckAgainst(spec, datasets)));
}

TEST(JobLayout, WhatHasNoMeaningForADatasetIsRefused) {
  const DatasetInfo pets = DatasetOf({5, 0, 30});
  DatasetInfo plain = pets;
  plain.groups.clear();
  EXPECT_THAT(AgainstError(Balanced(4), {plain}),
              HasSubstr("the samples of dataset \"data\" are not in runs by "
                        "label, so it has no classes to weigh; want by, "
                        "as in select(by=\"label\", weights=...); or "
                        "readers.image_folder, or "));
  JobSpec spec = Balanced(4);
  spec.selection = {.balanced = false, .shares = {{"c9", 1}, {"*", 1}}};
  EXPECT_EQ(AgainstError(spec, {pets}),
            "weights has \"c9\", which is no group; did you mean \"c0\"?");
  spec.selection.shares = {{"c1", 1}, {"*", 1}};
  EXPECT_EQ(AgainstError(spec, {pets}),
            "weights[\"c1\"] = 1, but this group has no samples; want 0");
  spec.selection.shares = {{"c0", 1}};
  EXPECT_THAT(AgainstError(spec, {pets}), HasSubstr("weights has no \"c2\""));
  JobSpec mixture = MixtureOf(Balanced(4), MixEnd::kStream);
  EXPECT_THAT(AgainstError(mixture, {pets, plain}),
              HasSubstr("source \"b\": weights: the samples of dataset"));
  EXPECT_THAT(AgainstError(Balanced(40), {pets}),
              HasSubstr("batch 40: want at most 35"));
  EXPECT_THAT(AgainstError(Balanced(4), {DatasetOf({0})}),
              HasSubstr("has 0 samples"));
}

TEST(JobLayout, WhatNeedsPassesIsRefused) {
  const auto error = [](const std::function<void(JobSpec*)>& change) {
    JobSpec spec = Balanced(4);
    change(&spec);
    const absl::Status status = CheckJob(spec).status();
    return status.ok() ? "" : std::string(Message(status));
  };
  EXPECT_EQ(error([](JobSpec*) {}), "");
  EXPECT_THAT(error([](JobSpec* spec) { spec->num_parts = 2; }),
              HasSubstr("num_parts 2: want 0 with weights of classes"));
  for (const LastBatch last_batch : {LastBatch::kFill, LastBatch::kPad,
                                     LastBatch::kPartial, LastBatch::kMask})
    EXPECT_THAT(error([&](JobSpec* spec) { spec->last_batch = last_batch; }),
                HasSubstr("want drop or stream with weights of classes"));
  EXPECT_THAT(error([](JobSpec* spec) {
                spec->pipeline.nodes[0].args["repeat"] = int64_t{2};
              }),
              HasSubstr("readers.image_folder: repeat 2: want 1 with weights"));
  EXPECT_THAT(error([](JobSpec* spec) {
                spec->pipeline.nodes = {
                    {"readers.tokens",
                     {},
                     {{"files", std::vector<std::string>{"/t.bin"}}}},
                    {"pack", {{0, 0}}, {{"length", int64_t{16}}}}};
                spec->pipeline.outputs = {{"tokens", {1, 0}}};
              }),
              HasSubstr("pack: rows that are packed of several samples are in "
                        "no group: want no weights with it"));
  EXPECT_THAT(error([](JobSpec* spec) {
                spec->selection.shares = {{"a", 1}};
              }),
              HasSubstr("want one of both"));
  EXPECT_THAT(error([](JobSpec* spec) {
                const Selection selection = spec->selection;
                *spec = MixtureOf(*spec, MixEnd::kStream);
                spec->selection = selection;
              }),
              HasSubstr("selection: want none beside sources"));
  EXPECT_THAT(error([](JobSpec* spec) {
                *spec = MixtureOf(*spec, MixEnd::kStream);
                spec->sources[1].selection.shares = {{"a", 1}};
              }),
              HasSubstr("source \"b\": weights are"));
  EXPECT_THAT(
      error([](JobSpec* spec) {
        spec->pipeline.nodes[0] = {
            std::string(kExternalReader),
            {},
            {{"num_samples", int64_t{100}},
             {"types", std::vector<std::string>{"encoded", "int32"}}}};
      }),
      HasSubstr("the samples of readers.external are brought by consumers"));
}

}  // namespace
}  // namespace leat
