// SPDX-License-Identifier: Apache-2.0
//
// Window: the steps of a Fetcher that are under way, and what its parts tell
// each other through them.
//
// Thread-compatible: the Fetcher's owner locks.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "client/batch/step.h"
#include "client/fetch/decisions.h"
#include "client/fetch/latency.h"

namespace leat::client {

struct FetchCounters {
  uint64_t rows = 0, bytes = 0;
  uint64_t hedged_rows = 0, failed_over_rows = 0, duplicate_rows = 0;
  uint64_t payload_copies = 0;
  uint64_t damaged_streams = 0;   // ended by a checksum that did not fit
  uint64_t unproven_streams = 0;  // of who did not prove to be the worker
  uint64_t placed_rows = 0;       // written in place by their worker
  uint64_t moved_steps = 0;       // moved to other memory
};

struct Window {
  // The row is to be asked (again). Without effect once it has come.
  void MakePending(Step& step, uint32_t index) {
    Row& row = step.rows[index];
    if (row.pending || row.settled()) return;
    row.pending = true;
    step.pending.push_back(index);
    dirty = true;
  }

  // The head; nullptr: there is none.
  Step* head() const { return steps.empty() ? nullptr : steps.front().get(); }

  std::deque<std::shared_ptr<Step>> steps;  // the head is handed out next
  Decisions decided;  // since the last Decide, which returns it
  FetchCounters counters;
  LatencyHistogram latency;  // from the request to the row
  bool dirty = false;        // something happened that needs Decide
  bool starved = false;      // rows wait for room on a stream
  uint64_t next_group = 1;
};

}  // namespace leat::client
