// SPDX-License-Identifier: Apache-2.0
//
// Prints how many indices per second a core maps, by permutation and by plan,
// and how long a row takes in a tree of shares and in a mixture.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/share_layout.h"
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

// Samples of all rows of a batch, as a plan finds them.
void MeasureMixture(size_t num_sources, bool even, uint32_t batch) {
  constexpr uint64_t kSamples = 1'281'167;
  const ShardTable shards =
      *ShardTable::Uniform(kSamples, ShardTable::DefaultShardSize(kSamples));
  std::vector<std::string> names;
  std::vector<ShareLayout::Source> sources;
  std::vector<std::unique_ptr<SampleOrder>> orders;
  for (uint32_t i = 0; i < num_sources; ++i) {
    names.push_back(std::to_string(i));
    sources.push_back({names.back(), kSamples, std::nullopt});
    JobSpec spec;
    spec.seed = SourceSeed(7, i);
    orders.push_back(std::make_unique<SampleOrder>(
        SampleOrder::Options{.seed = spec.seed}, shards, 1));
  }
  const std::vector<SharesFrom> shares = {{0, Weights(num_sources, even)}};
  const ShareLayout layout =
      ShareLayout::Create(ShareSchedule::Create(shares, names, batch).value(),
                          std::move(sources), MixEnd::kStream, 7)
          .value();
  std::vector<uint32_t> rows(batch);
  std::iota(rows.begin(), rows.end(), 0u);
  Stretches cut;
  const double cuts = MillionsPerSecond([&] {
    for (size_t step = 0; step < kIndices / batch; ++step)
      layout.Cut(0, step, rows, &cut);
  });
  std::vector<uint64_t> samples(batch);
  const double speed = MillionsPerSecond([&] {
    for (size_t step = 0; step < kIndices / batch; ++step) {
      layout.Cut(0, step, rows, &cut);
      size_t at = 0;
      for (const Stretch& stretch : cut.list) {
        orders[stretch.source]->Map(
            stretch.pass, stretch.run,
            std::span(cut.positions).subspan(at, stretch.rows));
        at += stretch.rows;
      }
      for (size_t i = 0; i < cut.slots.size(); ++i)
        samples[cut.slots[i]] = cut.positions[i];
    }
  });
  fmt::print(
      "mixture sources={:<5} even={:<5} batch={:<5} cut={:.1f}ns "
      "samples={:.1f}ns\n",
      num_sources, even, batch, 1000 / cuts, 1000 / speed);
}

}  // namespace
}  // namespace leat

int main() {
  for (uint64_t n :
       {uint64_t{1000}, uint64_t{1} << 20, (uint64_t{1} << 20) + 1,
        uint64_t{1'281'167}, uint64_t{1'000'000'000}, uint64_t{1} << 48})
    leat::MeasurePermutation(n);
  for (leat::Order order :
       {leat::Order::kSequential, leat::Order::kGlobalShuffle,
        leat::Order::kShardShuffle})
    for (uint32_t parts : {0u, 8u})
      leat::MeasurePlan(order, 1'281'167, 1024, parts);
  for (const bool even : {true, false})
    for (const size_t sources : {1, 3, 10, 100, 1000}) {
      leat::MeasureTree(sources, even);
      leat::MeasureMixture(sources, even, 1024);
    }
}
