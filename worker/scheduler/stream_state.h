// SPDX-License-Identifier: Apache-2.0
//
// StreamState and Job: the scheduler's data of a stream, and of all streams of
// a job. Guarded by its lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "worker/compute/row_work.h"
#include "worker/scheduler/group.h"
#include "worker/scheduler/read_ahead.h"
#include "worker/scheduler/row_queue.h"
#include "worker/scheduler/scheduler.h"
#include "worker/scheduler/shared_rows.h"
#include "worker/scheduler/stream_groups.h"

namespace leat::worker {

inline int DeviceOf(const RowRequest& request) {
  return request.memory == nullptr ? -1 : request.memory->device();
}

struct Job;

struct StreamState : ReadAhead::Stream, RowQueue::Place {
  uint64_t id = 0;
  Job* job = nullptr;
  std::shared_ptr<const RowWork> work;
  std::shared_ptr<GroupSink> sink;
  size_t row_bytes = 0;
  size_t rows_per_group = 1;
  size_t max_groups = 1;  // in work or not sent
  StreamGroups groups;
  std::shared_ptr<std::atomic<uint32_t>> held =
      std::make_shared<std::atomic<uint32_t>>(0);
  size_t rows_queued = 0;
  bool ahead = false;                  // its rows are read ahead
  bool opening = false;                // one of its groups; another group waits
  std::shared_ptr<SharedRows> shared;  // nullptr: no rows are shared
};

struct Job {
  double vtime = 0;
  double mean_ns = 500e3;  // per row, moving average
  bool eligible = false;
  size_t booked = 0;       // bytes of the pool, by groups that are read ahead
  size_t rows_queued = 0;  // of its streams
  Scheduler::JobRows told;
  const std::shared_ptr<SendingCounters> sending =
      std::make_shared<SendingCounters>();
  std::map<uint64_t, StreamState*> streams;
  uint64_t steps_per_epoch = 0;
  RowQueue queue;  // streams that have groups, or rows to make groups of
};

}  // namespace leat::worker
