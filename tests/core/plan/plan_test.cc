// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan.h"

#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include "core/plan/checked_job.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/core/plan/small_plans.h"

namespace leat {
namespace {

using Samples = std::vector<uint64_t>;

constexpr Order kOrders[] = {Order::kSequential, Order::kGlobalShuffle,
                             Order::kShardShuffle};

// Returns all steps of an epoch in order.
Samples Epoch(const Plan& plan, uint64_t epoch) {
  Samples all;
  for (uint64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    const Samples samples =
        SamplesOf(plan, epoch, step, PlanRows(plan.batch()));
    all.insert(all.end(), samples.begin(), samples.end());
  }
  return all;
}

// Returns the expected plan, built step by step from lists: slow, and without
// the plan's arithmetic.
std::vector<Samples> ReferenceEpoch(const std::vector<Samples>& part_orders,
                                    uint32_t batch, LastBatch last_batch) {
  const size_t part_rows = batch / part_orders.size();
  std::vector<std::vector<Samples>> steps_of_parts;  // [part][step]
  size_t num_steps = last_batch == LastBatch::kDrop ? ~size_t{0} : 0;
  for (const Samples& order : part_orders) {
    std::vector<Samples> steps;
    for (size_t i = 0; i < order.size(); ++i) {
      if (i % part_rows == 0) steps.emplace_back();
      steps.back().push_back(order[i]);
    }
    if (last_batch == LastBatch::kDrop) {
      if (!steps.empty() && steps.back().size() < part_rows) steps.pop_back();
      num_steps = std::min(num_steps, steps.size());
    } else {
      num_steps = std::max(num_steps, steps.size());
    }
    steps_of_parts.push_back(steps);
  }
  std::vector<Samples> batches(num_steps);
  for (size_t part = 0; part < part_orders.size(); ++part) {
    size_t wrapped = 0;
    for (size_t step = 0; step < num_steps; ++step) {
      Samples rows = step < steps_of_parts[part].size()
                         ? steps_of_parts[part][step]
                         : Samples();
      while (rows.size() < part_rows) {
        if (last_batch == LastBatch::kPartial)
          rows.push_back(kNoSample);
        else if (last_batch == LastBatch::kPad ||
                 last_batch == LastBatch::kMask)
          rows.push_back(part_orders[part].back());
        else
          rows.push_back(
              part_orders[part][wrapped++ % part_orders[part].size()]);
      }
      batches[step].insert(batches[step].end(), rows.begin(), rows.end());
    }
  }
  return batches;
}

// Returns the order of each part, read from a plan that has every sample once.
std::vector<Samples> PartOrders(JobSpec spec, const ShardTable& table,
                                uint64_t epoch) {
  spec.last_batch = LastBatch::kPartial;
  const Plan plan(spec, table);
  const uint32_t parts = std::max(spec.num_parts, 1u);
  const uint32_t part_rows = spec.batch / parts;
  std::vector<Samples> orders(parts);
  for (uint64_t step = 0; step < plan.steps_per_epoch(); ++step)
    for (uint32_t row = 0; row < spec.batch; ++row) {
      const uint64_t sample = SamplesOf(plan, epoch, step, {row})[0];
      if (sample != kNoSample) orders[row / part_rows].push_back(sample);
    }
  return orders;
}

void ExpectAsReference(const JobSpec& spec, const ShardTable& table) {
  SCOPED_TRACE(fmt::format(
      "N {} batch {} parts {} mix {} {} {}", table.num_samples(), spec.batch,
      spec.num_parts, spec.mix_parts, Name(spec.order), Name(spec.last_batch)));
  DatasetInfo dataset;
  dataset.shards = table;
  if (!CheckAgainst(spec, {&dataset, 1}).ok()) return;
  const Plan plan(spec, table);
  for (uint64_t epoch : {0, 1}) {
    const std::vector<Samples> orders = PartOrders(spec, table, epoch);
    JobSpec whole = spec;
    whole.num_parts = 0;
    const Samples all = PartOrders(whole, table, epoch)[0];
    for (size_t part = 0; part < orders.size(); ++part) {
      Samples found = orders[part];
      if (!spec.mix_parts) std::sort(found.begin(), found.end());
      Samples want;
      for (uint64_t i = table.num_samples() * part / orders.size();
           i < table.num_samples() * (part + 1) / orders.size(); ++i)
        want.push_back(spec.mix_parts ? all[i] : i);
      ASSERT_EQ(found, want) << "part " << part;
      if (spec.order == Order::kSequential) {
        ASSERT_EQ(orders[part], want);
      }
    }
    const std::vector<Samples> batches =
        ReferenceEpoch(orders, spec.batch, spec.last_batch);
    ASSERT_GT(batches.size(), 0u);
    ASSERT_EQ(plan.steps_per_epoch(), batches.size());
    for (size_t step = 0; step < batches.size(); ++step) {
      ASSERT_EQ(SamplesOf(plan, epoch, step, PlanRows(spec.batch)),
                batches[step]);
      // Rows beyond the samples, at any position.
      JobSpec partial = spec;
      partial.last_batch = LastBatch::kPartial;
      const bool masks = spec.last_batch == LastBatch::kMask;
      const Samples held = masks ? SamplesOf(Plan(partial, table), epoch, step,
                                             PlanRows(spec.batch))
                                 : batches[step];
      ASSERT_EQ(plan.rows_in(step),
                spec.batch - std::count(held.begin(), held.end(), kNoSample));
      for (uint32_t row = 0; row < spec.batch; ++row)
        ASSERT_EQ(plan.IsPadding(epoch, step, row),
                  masks && held[row] == kNoSample);
    }
  }
}

TEST(Plan, AgreesWithASlowReferenceInEveryLayoutAndPolicy) {
  for (Order order : kOrders)
    for (LastBatch last_batch : kPlanPolicies)
      for (uint64_t samples : {1, 2, 3, 5, 7, 12, 16, 31, 50})
        for (uint32_t batch : {1, 2, 4, 6, 12})
          for (uint32_t parts = 0; parts <= batch; ++parts)
            if (parts == 0 || batch % parts == 0)
              for (bool mix : {false, true}) {
                JobSpec spec = PlanSpec(batch, order, last_batch, parts);
                spec.mix_parts = mix && parts > 0;
                ExpectAsReference(spec, PlanTable(samples));
              }
}

TEST(Plan, AgreesWithASlowReferenceForIrregularShards) {
  const std::vector<uint64_t> sizes = {1, 9, 2, 30, 1, 1, 5};
  const auto table = ShardTable::FromSizes(sizes);
  ASSERT_TRUE(table.ok());
  for (Order order : kOrders)
    for (LastBatch last_batch : kPlanPolicies)
      for (uint32_t parts : {0, 1, 2, 3, 4, 12})
        ExpectAsReference(PlanSpec(12, order, last_batch, parts), *table);
}

TEST(Plan, RotatingPartsMoveOnByOneEachEpoch) {
  for (Order order : kOrders)
    for (LastBatch last_batch : kPlanPolicies) {
      JobSpec spec = PlanSpec(12, order, last_batch, 3);
      const Plan fixed(spec, PlanTable(50));
      spec.rotate_parts = true;
      const Plan rotating(spec, PlanTable(50));
      ASSERT_EQ(rotating.steps_per_epoch(), fixed.steps_per_epoch());
      for (uint64_t epoch : {0, 1, 2, 3, 7})
        for (uint64_t step = 0; step < fixed.steps_per_epoch(); ++step)
          for (uint32_t row = 0; row < 12; ++row) {
            const auto other =
                static_cast<uint32_t>((row + epoch % 3 * 4) % 12);
            ASSERT_EQ(SamplesOf(rotating, epoch, step, {row}),
                      SamplesOf(fixed, epoch, step, {other}));
            ASSERT_EQ(rotating.PassOf(epoch, step, row), epoch);
          }
    }
}

// Checks the walk of each block, pass after pass, with lists.
void ExpectStream(JobSpec spec, const ShardTable& table, uint64_t passes) {
  SCOPED_TRACE(fmt::format("N {} batch {} parts {} rotate {} mix {} {}",
                           table.num_samples(), spec.batch, spec.num_parts,
                           spec.rotate_parts, spec.mix_parts,
                           Name(spec.order)));
  const uint32_t parts = std::max(spec.num_parts, 1u);
  const uint32_t block_rows = spec.batch / parts;
  JobSpec fixed = spec;
  fixed.rotate_parts = false;
  std::vector<Samples> walked(parts), passes_of(parts);
  for (uint64_t pass = 0; pass < passes; ++pass) {
    const std::vector<Samples> orders = PartOrders(fixed, table, pass);
    for (uint64_t block = 0; block < parts; ++block) {
      const Samples& order =
          orders[spec.rotate_parts ? (block + pass) % parts : block];
      walked[block].insert(walked[block].end(), order.begin(), order.end());
      passes_of[block].insert(passes_of[block].end(), order.size(), pass);
    }
  }
  spec.last_batch = LastBatch::kStream;
  const Plan plan(spec, table);
  EXPECT_EQ(plan.steps_per_epoch(), kStreamSteps);
  EXPECT_TRUE(plan.CheckEpoch(0).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(plan.CheckEpoch(1)));
  for (uint64_t step = 0;; ++step) {
    const Samples all = SamplesOf(plan, 0, step, PlanRows(spec.batch));
    EXPECT_EQ(plan.rows_in(step), spec.batch);
    for (uint32_t row = 0; row < spec.batch; ++row) {
      const uint32_t block = row / block_rows;
      const uint64_t at = step * block_rows + row % block_rows;
      if (at >= walked[block].size()) return;
      ASSERT_EQ(all[row], walked[block][at]) << "step " << step;
      ASSERT_EQ(plan.PassOf(0, step, row), passes_of[block][at]);
      ASSERT_EQ(SamplesOf(plan, 5, step, {row})[0], all[row]);
    }
  }
}

TEST(Plan, AStreamWalksPassAfterPassWithoutAGap) {
  for (Order order : kOrders)
    for (uint64_t samples : {1, 2, 3, 5, 7, 12, 16, 31, 50})
      for (uint32_t batch : {1, 2, 6, 12})
        for (uint32_t parts = 0; parts <= batch && parts <= samples; ++parts)
          if (parts == 0 || batch % parts == 0)
            for (bool rotate : {false, true})
              for (bool mix : {false, true}) {
                JobSpec spec =
                    PlanSpec(batch, order, LastBatch::kStream, parts);
                spec.rotate_parts = rotate;
                spec.mix_parts = mix;
                ExpectStream(spec, PlanTable(samples), 7);
              }
}

TEST(Plan, AStreamReachesItsLastStep) {
  JobSpec spec =
      PlanSpec(kMaxBatch, Order::kSequential, LastBatch::kStream, 1024);
  spec.rotate_parts = true;
  const Plan plan(spec, PlanTable((uint64_t{1} << 40) - 87, 1u << 24));
  const Samples samples =
      SamplesOf(plan, 0, kStreamSteps - 1, PlanRows(kMaxBatch));
  for (uint64_t sample : samples) ASSERT_LT(sample, plan.num_samples());
  for (uint32_t row = 1; row < 1024; ++row)
    ASSERT_EQ(samples[row], (samples[0] + row) % plan.num_samples());
}

TEST(Plan, GivesAnyRowsInAnyOrder) {
  std::mt19937 random(3);
  for (Order order : kOrders)
    for (uint32_t parts : {0, 4})
      for (LastBatch last_batch : kPlanPolicies) {
        const Plan plan(PlanSpec(64, order, last_batch, parts),
                        PlanTable(1001));
        const uint64_t last = plan.steps_per_epoch() - 1;
        const Samples all = SamplesOf(plan, 2, last, PlanRows(64));
        std::vector<uint32_t> rows = PlanRows(64);
        std::shuffle(rows.begin(), rows.end(), random);
        rows.resize(23);
        rows.push_back(rows.front());
        const Samples some = SamplesOf(plan, 2, last, rows);
        for (size_t i = 0; i < rows.size(); ++i)
          ASSERT_EQ(some[i], all[rows[i]]);
      }
}

TEST(Plan, GivesNothingForNoRows) {
  uint64_t untouched = 77;
  Plan(PlanSpec(4), PlanTable(10))
      .Samples(0, 0, {}, std::span(&untouched, size_t{0}));
  EXPECT_EQ(untouched, 77u);
}

TEST(Plan, GlobalLayoutIsOneOrderWhateverTheBatch) {
  for (Order order : kOrders) {
    const Samples small =
        Epoch(Plan(PlanSpec(3, order, LastBatch::kDrop), PlanTable(600)), 1);
    for (uint32_t batch : {1, 8, 600})
      EXPECT_EQ(Epoch(Plan(PlanSpec(batch, order), PlanTable(600)), 1), small);
  }
}

TEST(Plan, EpochsAndSeedsHaveOrdersOfTheirOwn) {
  for (Order order : {Order::kGlobalShuffle, Order::kShardShuffle}) {
    std::set<Samples> orders;
    for (uint64_t seed : {0ull, 1ull, 1ull << 40, ~0ull})
      for (uint64_t epoch : {0ull, 1ull, 2ull, ~0ull}) {
        JobSpec spec = PlanSpec(10, order);
        spec.seed = seed;
        orders.insert(Epoch(Plan(spec, PlanTable(100)), epoch));
      }
    EXPECT_EQ(orders.size(), 16u);
  }
}

TEST(Plan, PartsHaveOrdersOfTheirOwn) {
  const Plan plan(PlanSpec(2, Order::kGlobalShuffle, LastBatch::kDrop, 2),
                  PlanTable(2000));
  int equal = 0;
  for (uint64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    const Samples samples = SamplesOf(plan, 0, step, {0, 1});
    equal += samples[0] + 1000 == samples[1];
  }
  EXPECT_LE(equal, 6);
}

TEST(Plan, AThousandMillionSamplesNeedNoMemory) {
  const Plan plan(PlanSpec(1024, Order::kGlobalShuffle, LastBatch::kPartial),
                  PlanTable(1'000'000'000, 1 << 20));
  EXPECT_EQ(plan.steps_per_epoch(), 976'563u);
  EXPECT_EQ(plan.rows_in(976'562), 512u);
  std::set<uint64_t> seen;
  for (uint64_t step : {0, 1, 500'000, 976'562})
    for (uint64_t sample : SamplesOf(plan, 3, step, PlanRows(1024)))
      if (sample != kNoSample) {
        EXPECT_LT(sample, 1'000'000'000u);
        EXPECT_TRUE(seen.insert(sample).second);
      }
  EXPECT_EQ(seen.size(), 3 * 1024u + 512u);
}

// N × n does not fit in 64 bits here.
TEST(Plan, CutsTheLargestDatasetIntoTheMostParts) {
  const uint64_t samples = (uint64_t{1} << 48) - 1;
  const uint32_t parts = kMaxBatch;
  const Plan plan(
      PlanSpec(parts, Order::kSequential, LastBatch::kPartial, parts),
      PlanTable(samples, uint64_t{1} << 32));
  EXPECT_EQ(plan.steps_per_epoch(), uint64_t{1} << 28);
  EXPECT_EQ(SamplesOf(plan, 0, 0, {0, 1, parts / 2, parts - 1}),
            (Samples{0, (1u << 28) - 1, (uint64_t{1} << 47) - 1,
                     samples - (uint64_t{1} << 28)}));
  EXPECT_EQ(plan.rows_in((1u << 28) - 1), parts - 1);
}

TEST(Plan, CanBeMoved) {
  Plan a(PlanSpec(4, Order::kShardShuffle), PlanTable(100));
  const Samples want = Epoch(a, 0);
  Plan b(std::move(a));
  EXPECT_EQ(Epoch(b, 0), want);
}

TEST(Plan, ThreadsSeeOneOrder) {
  const Plan plan(PlanSpec(8, Order::kShardShuffle, LastBatch::kFill, 4),
                  PlanTable(500));
  std::vector<Samples> want;
  for (uint64_t epoch = 0; epoch < 6; ++epoch) {
    JobSpec spec = PlanSpec(8, Order::kShardShuffle, LastBatch::kFill, 4);
    want.push_back(Epoch(Plan(spec, PlanTable(500)), epoch));
  }
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 12; ++i)
        EXPECT_EQ(Epoch(plan, (i * (t + 1)) % 6), want[(i * (t + 1)) % 6]);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace leat
