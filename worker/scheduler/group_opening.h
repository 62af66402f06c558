// SPDX-License-Identifier: Apache-2.0
//
// GroupOpening: decides which rows become groups, and manages the room that
// groups occupy: one of their stream's unsent groups, a buffer of the pool, and
// what a device may compute with them.
//
// The life of a group:
//
//   Plan      rows of a request become a group, which takes a credit
//             (kPlanned). If its rows are read ahead, its buffer is booked:
//             others leave room
//   Reserve   it takes its buffer, without memory so far; a staged group also
//             takes other waiting groups along (Join)
//   Allocate  a decode thread gives buffers their memory and begins the
//             stage, without the lock (kOpening)
//   …         it is computed (kOpen; compute.cc), finished by its stage if it
//             has one (device_stages.h), and delivered
//
// Thread-compatible: the owner locks, except for Allocate.
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
  // The objects pointed to outlive it.
  GroupOpening(const SchedulerOptions& options, BufferPool* pool,
               std::shared_ptr<WakeSignal> wake,
               std::shared_ptr<SharedCounters> counters, const Clock& clock)
      : options_(options),
        pool_(pool),
        wake_(std::move(wake)),
        counters_(std::move(counters)),
        clock_(clock) {}

  // Returns how many rows the next group of the stream's first request may
  // have, if they are not read ahead.
  size_t RowsOfNextGroup(const StreamState& stream) const;
  // True if there is room for a group of up to `rows` rows of the stream's
  // first request; `credited`: it shares the credit of another group of the
  // stream.
  bool MayPlan(const StreamState& stream, size_t rows, bool credited) const;
  // Makes a group of the next rows of the stream's first request, at most
  // `rows`.
  StreamGroups::Iterator Plan(StreamState& stream, size_t rows);
  // Books the group's buffer, if it needs one.
  void Reserve(StreamState& stream, Group& group);
  // Cancels the booking of the group's buffer.
  void Unbook(StreamState& stream, Group& group);
  // Adds the groups that a device may compute together with the group of
  // `stream`.
  void Join(StreamState& stream, Groups* groups);

  // Gives the groups their memory and, if they are staged, a stage, which is
  // nullptr if there is none for them. Takes no lock.
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
  size_t booked_ = 0;  // the sum of Job::booked over all jobs
};

}  // namespace leat::worker
