// SPDX-License-Identifier: Apache-2.0
//
// EngineOptions: the parts and settings of one iterator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "client/batch/batch_pool.h"
#include "client/batch/feed.h"
#include "client/batch/position.h"
#include "client/batch/step.h"
#include "client/coordinator/consumer_session.h"
#include "client/coordinator/sheet_reporter.h"
#include "client/engine/link.h"
#include "client/engine/link_prober.h"
#include "client/engine/memory_sharer.h"
#include "client/fetch/assignment_table.h"
#include "client/fetch/fetcher_config.h"
#include "client/fetch/job_tables.h"
#include "core/observe/tracing.h"
#include "core/pipeline/epilogue.h"
#include "core/plan/job_shards.h"

namespace leat::client {

class DeviceBatches;

struct EngineOptions {
  // The job. `plan` is pure: samples[i] = the sample of map->rows()[i].
  std::string job;
  std::vector<JobTables::Dataset> datasets;  // of its sources, in their order
  uint64_t steps_per_epoch = 0;
  std::function<void(uint64_t epoch, uint64_t step, std::span<uint64_t>)> plan;

  JobShards Shards() const {
    std::vector<ShardTable> tables;
    for (const JobTables::Dataset& dataset : datasets)
      tables.push_back(dataset.shards);
    return JobShards(std::move(tables));
  }
  // Returns whether no step is delivered from there on.
  bool AtEnd(const EpochStep& at) const {
    return end_epoch != 0 && at.epoch >= end_epoch;
  }
  // Returns the step after `at`.
  EpochStep After(EpochStep at) const {
    if (++at.step < steps_per_epoch) return at;
    return {at.epoch + 1, 0};
  }

  // The part of the job from `start` to `end_epoch` is delivered.
  EpochStep start;
  uint64_t end_epoch = 1;  // the first one not delivered; 0: without end
  std::shared_ptr<const RowMap> map;
  std::shared_ptr<const BatchLayout> layout;
  std::shared_ptr<BatchPool> pool;
  std::shared_ptr<DeviceBatches>
      device;           // for device memory; null: host memory
  uint32_t window = 4;  // steps
  // The consumer is not the caller of Next: it calls BeginWait and EndWait.
  bool ahead = false;
  // The source of client-supplied samples; null: workers read them. No step
  // begins while the steps in flight have supplied more than
  // `max_supplied_bytes`.
  std::shared_ptr<Feed> feed;
  std::shared_ptr<SampleSource>
      source;  // serves the feed; null: the owner does
  uint64_t max_supplied_bytes = 4ull << 30;
  Epilogue epilogue = Epilogue::kWorker;

  // These define how rows are fetched.
  FetcherConfig fetch;
  MemorySharer::Config share;
  Session::Config session;
  LinkFactory links;
  // Finds out why an address is not reached; null: no probing.
  LinkProber::Probe probe;
  Session::Opener sessions;  // null: no coordinator, only `table`
  // True for a job with max_bad: the iterator's end waits for the verdict, at
  // most `verdict_patience`.
  bool budget = false;
  Duration verdict_patience = std::chrono::seconds(5);
  v1::OpenConsumer open;
  std::shared_ptr<const AssignmentTable> table;  // initial table; may be null
  // Its listeners receive the steps; outlives the engine. nullptr: no tracing.
  Tracer* tracer = nullptr;
  // Serves the session's requests for previews; null: there are none.
  std::shared_ptr<SheetReporter> sheets;
  // Called with each new table; may be null.
  std::function<void(std::shared_ptr<const AssignmentTable>)> on_table;
};

}  // namespace leat::client
