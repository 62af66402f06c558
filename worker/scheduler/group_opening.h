// SPDX-License-Identifier: Apache-2.0
//
// GroupOpening: which rows become groups, and the room that groups take: one of
// their stream's unsent groups, a buffer of the pool, and what a device may
// compute with them.
//
// A group's life, and who sees to it:
//
//   Plan      rows of a request become a group, which takes a credit (kPlanned). If
//             its rows are read ahead, its buffer is booked: others leave room
//   Reserve   it takes its buffer, without memory as yet; a staged group also
//             takes along what waits (Join)
//   Allocate  a decode thread gives buffers their memory and begins the stage,
//             without the lock (kOpening)
//   …         it is computed (kOpen; compute.cc), finished by its stage if it has
//             one (device_stages.h), and delivered
//
// Thread-compatible: the owner locks, but for Allocate.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/clock.h"
#include "worker/compute/buffer_pool.h"
#include "worker/compute/wake_signal.h"
#include "worker/scheduler/device_stages.h"
#include "worker/scheduler/group.h"
#include "worker/scheduler/scheduler.h"
#include "worker/scheduler/stream_groups.h"
#include "worker/scheduler/stream_state.h"

namespace leat::worker {

class GroupOpening {
 public:
  // What is pointed to outlives it.
  GroupOpening(const SchedulerOptions& options, BufferPool* pool,
               std::shared_ptr<WakeSignal> wake,
               std::shared_ptr<SharedCounters> counters, const Clock& clock)
      : options_(options),
        pool_(pool),
        wake_(std::move(wake)),
        counters_(std::move(counters)),
        clock_(clock) {}

  // Returns how many rows the next group of the stream's first request may have, if
  // they are not read ahead.
  size_t RowsOfNextGroup(const StreamState& stream) const;
  // Whether there is room for a group of up to `rows` of the stream's first
  // request; `credited`: it counts with another one of the stream.
  bool MayPlan(const StreamState& stream, size_t rows, bool credited) const;
  // Makes a group of the next rows of the stream's first request: `rows` at most.
  StreamGroups::Iterator Plan(StreamState& stream, size_t rows);
  // Books the group's buffer, if it needs one.
  void Reserve(StreamState& stream, Group& group);
  // The group does without the buffer that it lacks.
  void Unbook(StreamState& stream, Group& group);
  // Adds to the group of `stream` what a device may compute with it.
  void Join(StreamState& stream, Groups* groups);

  // Gives the groups their memory, and if they are staged a stage, which is null
  // if there is none for them. Takes no lock.
  struct Allocated {
    std::vector<absl::Status> statuses;  // by group
    std::shared_ptr<SharedStage> stage;
  };
  static Allocated Allocate(const Groups& groups);

 private:
  const SchedulerOptions& options_;
  BufferPool* const pool_;
  const std::shared_ptr<WakeSignal> wake_;
  const std::shared_ptr<SharedCounters> counters_;
  const Clock& clock_;
  size_t booked_ = 0;  // as Job's, of all
};

}  // namespace leat::worker
