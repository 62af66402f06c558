// SPDX-License-Identifier: Apache-2.0
//
// ThreadWaits: what the scheduler's threads, and the jobs' next rows, waited
// for. Note charges the time that passed to the present state, so it is to be
// called before the state changes. Thread-compatible: the owner locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "core/clock.h"
#include "worker/scheduler/read_ahead.h"
#include "worker/scheduler/scheduler.h"
#include "worker/scheduler/stream_state.h"

namespace leat::worker {

class ThreadWaits {
 public:
  using Waits = Scheduler::Stats::Waits;

  // The present state.
  struct Standing {
    int decode_threads = 0;    // that have not ended
    int read_threads = 0;      // the same
    size_t tasks_in_work = 0;  // as many decode threads have them
    // Included, for a row that another thread computes.
    int64_t tasks_waiting = 0;
    size_t rows_queued = 0;
  };

  explicit ThreadWaits(MonotonicTime now) : at_(now) {}

  // Adds the time since the last call. Its cost does not depend on the number
  // of streams and rows.
  void Note(MonotonicTime now, const Standing& standing,
            const ReadAhead& read_ahead, std::map<std::string, Job>& jobs);

  const Waits& decode() const { return decode_; }
  const Waits& read() const { return read_; }

 private:
  static void NoteJob(Job& job, uint64_t spent_ns, const Standing& standing,
                      const ReadAhead& read_ahead);

  MonotonicTime at_;
  Waits decode_, read_;
};

}  // namespace leat::worker
