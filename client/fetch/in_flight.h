// SPDX-License-Identifier: Apache-2.0
//
// InFlight: the steps of a Fetcher that are in flight, and the state that its
// parts share.
//
// Thread-compatible: the Fetcher's owner locks.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "client/batch/step.h"
#include "client/fetch/decisions.h"
#include "client/fetch/latency.h"
#include "client/fetch/worker_stream.h"

namespace leat::client {

struct FetchCounters {
  uint64_t rows = 0, bytes = 0;
  uint64_t hedged_rows = 0, failed_over_rows = 0, duplicate_rows = 0;
  uint64_t payload_copies = 0;
  uint64_t damaged_streams = 0;   // ended by a checksum mismatch
  uint64_t unproven_streams = 0;  // whose peer did not prove to be the worker
  uint64_t placed_rows = 0;       // written in place by their worker
  uint64_t moved_steps = 0;       // moved to other memory
  AnswerTimes answers;
  Duration unplanned{0};  // waits while no step was in flight
};

struct InFlight {
  // Makes the row pending, to be requested (again). No effect once it has
  // arrived.
  void MakePending(Step& step, uint32_t index) {
    Row& row = step.rows[index];
    if (row.pending || row.settled()) return;
    row.pending = true;
    step.pending.push_back(index);
    dirty = true;
  }

  // Returns the head; nullptr: there is none.
  Step* head() const { return steps.empty() ? nullptr : steps.front().get(); }

  std::deque<std::shared_ptr<Step>> steps;  // the head is delivered next
  Decisions decided;  // since the last Decide, which returns it
  FetchCounters counters;
  LatencyHistogram latency;  // from the request to the row
  bool dirty = false;        // an event needs Decide
  bool starved = false;      // rows wait for room on a stream
  uint64_t next_group = 1;
};

}  // namespace leat::client
