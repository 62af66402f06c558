// SPDX-License-Identifier: Apache-2.0
//
// Reports of workers and consumers, and the statistics that are made of them.
#pragma once

#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "server/observe/statistics.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {

inline v1::StageStats& AddStage(
    v1::Stage stage, uint32_t places, uint64_t busy_ns,
    google::protobuf::RepeatedPtrField<v1::StageStats>* to) {
  v1::StageStats& stats = *to->Add();
  stats.set_stage(stage);
  stats.set_places(places);
  stats.set_busy_ns_total(busy_ns);
  return stats;
}

// A worker of 8 threads that has decoded, and waited for records, this long.
inline v1::WorkerStats WorkerAt(uint64_t rows, uint64_t decoding_ns,
                                uint64_t input_ns) {
  v1::WorkerStats stats;
  stats.set_rows_total(rows);
  AddStage(v1::STAGE_READ, 8, 0, stats.mutable_stages());
  AddStage(v1::STAGE_DECODE, 8, decoding_ns, stats.mutable_stages())
      .set_input_ns_total(input_ns);
  AddStage(v1::STAGE_SEND, 2, 0, stats.mutable_stages());
  return stats;
}

inline v1::ConsumerStats ConsumerAt(uint64_t rows, uint64_t waited_ns,
                                    const std::string& worker = "") {
  v1::ConsumerStats stats;
  stats.set_rows_total(rows);
  v1::StageStats& train =
      AddStage(v1::STAGE_TRAIN, 1, 0, stats.mutable_stages());
  train.set_items_total(rows > 0 ? 1 : 0);
  train.set_input_ns_total(waited_ns);
  train.set_queue_depth(1);
  train.set_queue_capacity(4);
  if (worker.empty()) return stats;
  stats.add_waited_for()->set_worker(worker);
  stats.mutable_waited_for(0)->set_waited_ns_total(waited_ns);
  return stats;
}

class StatisticsTest : public testing::Test {
 protected:
  MonotonicTime After(int64_t seconds) const {
    return begin_ + std::chrono::seconds(seconds);
  }

  // Returns the mean of the worker's statistics since then.
  std::optional<WorkerStatistics> Of(const std::string& worker,
                                     MonotonicTime since) const {
    WorkerSlots slots;
    statistics_.AddWorker(worker, since, &slots);
    WaitsBySlot all;
    for (int64_t slot = 0; slot < 10; ++slot)
      all[History::SlotOf(since) + slot] = 0;
    return slots.Mean(all, {});
  }

  const MonotonicTime begin_{std::chrono::hours(7)};
  Statistics statistics_{History::Config()};
};

}  // namespace leat::server
