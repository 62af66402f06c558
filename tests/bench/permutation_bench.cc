// SPDX-License-Identifier: Apache-2.0
//
// Prints how many indices per second a core maps, by permutation and by plan,
// and how long a row takes in a tree of shares and in a mixture.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/share_tree.h"
#include "core/plan/whole_weights.h"
#include "core/random/permutation.h"
#include "fmt/core.h"

namespace leat {
namespace {

using std::chrono::steady_clock;

constexpr size_t kIndices = 1 << 16;

// Returns millions of indices per second in the best of several runs of `map`;
// each run maps `kIndices`.
template <class Map>
double MillionsPerSecond(Map map) {
  double best = 0;
  for (int run = 0; run < 20; ++run) {
    const steady_clock::time_point start = steady_clock::now();
    map();
    const std::chrono::duration<double> elapsed = steady_clock::now() - start;
    best = std::max(best, kIndices / elapsed.count() / 1e6);
  }
  return best;
}

void MeasurePermutation(uint64_t n) {
  const Permutation permutation(n, 1);
  std::vector<uint64_t> out(std::min<uint64_t>(n, kIndices));
  const double batches = MillionsPerSecond([&] {
    for (size_t done = 0; done < kIndices; done += out.size())
      permutation.Map(0, out);
  });
  volatile uint64_t sink = 0;
  const double single = MillionsPerSecond([&] {
    for (uint64_t i = 0; i < kIndices; ++i) sink = sink + permutation(i % n);
  });
  fmt::print("permutation n={:<16} map={:.0f}M/s one_by_one={:.0f}M/s\n", n,
             batches, single);
}

void MeasurePlan(Order order, uint64_t n, uint32_t batch, uint32_t num_parts) {
  JobSpec spec;
  spec.batch = batch;
  spec.order = order;
  spec.num_parts = num_parts;
  const ShardTable shards =
      *ShardTable::Uniform(n, ShardTable::DefaultShardSize(n));
  const Plan plan(spec, shards);
  std::vector<uint32_t> rows(batch);
  std::iota(rows.begin(), rows.end(), 0u);
  std::vector<uint64_t> samples(batch);
  const double speed = MillionsPerSecond([&] {
    for (size_t step = 0; step < kIndices / batch; ++step)
      plan.Samples(0, step, rows, samples);
  });
  fmt::print(
      "plan order={:<10} n={:<10} batch={:<5} parts={} samples={:.1f}M/s\n",
      Name(order), n, batch, num_parts, speed);
}

// Weights of 1, 1/2, 1/3, …, or even ones.
std::vector<double> Weights(size_t sources, bool even) {
  std::vector<double> weights(sources, 1);
  if (!even)
    for (size_t i = 0; i < sources; ++i)
      weights[i] /= static_cast<double>(i + 1);
  return weights;
}

void MeasureTree(size_t leaves, bool even) {
  const ShareTree tree(WholeWeights(Weights(leaves, even)).value());
  constexpr uint64_t kFirst = uint64_t{1} << 40;
  volatile uint64_t sink = 0;
  const double located = MillionsPerSecond([&] {
    for (uint64_t k = 0; k < kIndices; ++k)
      sink = sink + tree.Locate(kFirst + k).index;
  });
  const double counted = MillionsPerSecond([&] {
    for (uint64_t k = 0; k < kIndices; ++k)
      sink = sink + tree.Count(static_cast<uint32_t>(k % leaves), kFirst + k);
  });
  fmt::print("shares leaves={:<6} even={:<5} locate={:.1f}ns count={:.1f}ns\n",
             leaves, even, 1000 / located, 1000 / counted);
}

constexpr uint64_t kSamples = 1'281'167;

// The plan of a job of so many sources, of kSamples each.
Plan PlanOf(size_t num_sources, bool even, uint32_t batch) {
  const ShardTable shards =
      *ShardTable::Uniform(kSamples, ShardTable::DefaultShardSize(kSamples));
  JobSpec spec;
  spec.seed = 7;
  spec.batch = batch;
  spec.order = Order::kGlobalShuffle;
  if (num_sources == 1) return {spec, shards};
  for (size_t i = 0; i < num_sources; ++i)
    spec.sources.push_back({.name = std::to_string(i), .pipeline = {}});
  spec.shares = {{0, Weights(num_sources, even)}};
  std::vector<DatasetInfo> datasets(num_sources);
  for (DatasetInfo& dataset : datasets) dataset.shards = shards;
  return {spec, datasets};
}

// Maps all rows of so many batches, and returns nanoseconds for each row.
double PlanRows(const Plan& plan) {
  const uint32_t batch = plan.batch();
  std::vector<uint32_t> rows(batch);
  std::iota(rows.begin(), rows.end(), 0u);
  std::vector<uint64_t> samples(batch);
  const steady_clock::time_point start = steady_clock::now();
  for (size_t step = 0; step < kIndices / batch; ++step)
    plan.Samples(0, step, rows, samples);
  const std::chrono::duration<double, std::nano> taken =
      steady_clock::now() - start;
  return taken.count() / kIndices;
}

// Prints what a row of a mixture costs beside one of a job of one source, in
// rounds that take turns.
void MeasureMixture(size_t num_sources, bool even, uint32_t batch) {
  const Plan one = PlanOf(1, even, batch);
  const Plan mixture = PlanOf(num_sources, even, batch);
  std::vector<double> of_one, of_mixture;
  for (int round = 0; round < 21; ++round) {
    of_one.push_back(PlanRows(one));
    of_mixture.push_back(PlanRows(mixture));
  }
  const double least_one = *std::ranges::min_element(of_one);
  const double least_mixture = *std::ranges::min_element(of_mixture);
  fmt::print(
      "mixture sources={:<5} even={:<5} batch={:<5} one={:.1f}ns "
      "mixture={:.1f}ns ratio={:.2f}\n",
      num_sources, even, batch, least_one, least_mixture,
      least_mixture / least_one);
}

}  // namespace
}  // namespace leat

// With `mixtures` only the lines of mixtures are printed.
int main(int argc, char** argv) {
  const bool all = argc < 2 || std::string_view(argv[1]) != "mixtures";
  for (uint64_t n :
       {uint64_t{1000}, uint64_t{1} << 20, (uint64_t{1} << 20) + 1,
        uint64_t{1'281'167}, uint64_t{1'000'000'000}, uint64_t{1} << 48})
    if (all) leat::MeasurePermutation(n);
  for (leat::Order order :
       {leat::Order::kSequential, leat::Order::kGlobalShuffle,
        leat::Order::kShardShuffle})
    for (uint32_t parts : {0u, 8u})
      if (all) leat::MeasurePlan(order, 1'281'167, 1024, parts);
  for (const bool even : {true, false})
    for (const size_t sources : {3, 10, 100, 1000}) {
      if (all) leat::MeasureTree(sources, even);
      leat::MeasureMixture(sources, even, 1024);
    }
}
