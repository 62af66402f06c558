// SPDX-License-Identifier: Apache-2.0
//
// Prints how many indices per second a core maps, by permutation and by plan.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/plan/plan.h"
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
}
