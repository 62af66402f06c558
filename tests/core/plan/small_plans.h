// SPDX-License-Identifier: Apache-2.0
//
// Small jobs and datasets for the tests of Plan, and a step's samples.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "core/plan/job.h"
#include "core/plan/plan.h"
#include "core/plan/shard_table.h"
#include "gtest/gtest.h"

namespace leat {

inline constexpr LastBatch kPlanPolicies[] = {
    LastBatch::kDrop, LastBatch::kFill, LastBatch::kPad, LastBatch::kPartial,
    LastBatch::kMask};

inline JobSpec PlanSpec(uint32_t batch, Order order = Order::kGlobalShuffle,
                        LastBatch last_batch = LastBatch::kDrop,
                        uint32_t num_parts = 0) {
  JobSpec spec;
  spec.name = "job";
  spec.seed = 7;
  spec.batch = batch;
  spec.order = order;
  spec.last_batch = last_batch;
  spec.num_parts = num_parts;
  spec.shuffle_window = 4;
  return spec;
}

inline ShardTable PlanTable(uint64_t samples, uint64_t shard_size = 5) {
  auto table = ShardTable::Uniform(samples, shard_size);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

inline std::vector<uint64_t> SamplesOf(const Plan& plan, uint64_t epoch,
                                       uint64_t step,
                                       const std::vector<uint32_t>& rows) {
  std::vector<uint64_t> samples(rows.size());
  plan.Samples(epoch, step, rows, samples);
  return samples;
}

inline std::vector<uint32_t> PlanRows(uint32_t batch) {
  std::vector<uint32_t> rows(batch);
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

}  // namespace leat
