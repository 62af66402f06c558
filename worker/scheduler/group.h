// SPDX-License-Identifier: Apache-2.0
//
// Group: rows of one request that are computed together. SentGroup: the part of
// a group that lives until it is sent. Also defines what groups share:
// counters, and their stream's limit of groups.
//
// The scheduler makes a Group and guards it with its lock until it is complete.
// Deliver then makes a SentGroup of it, which the holder of the payload owns:
// gRPC may be the last to release it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/clock.h"
#include "core/observe/tracing.h"
#include "worker/compute/buffer_pool.h"
#include "worker/compute/histogram.h"
#include "worker/compute/row_work.h"
#include "worker/compute/wake_signal.h"
#include "worker/scheduler/read_ahead.h"
#include "worker/scheduler/shared_rows.h"

namespace leat::worker {

// Counters that outlive streams and the scheduler, because gRPC may be the last
// to release a buffer.
struct SharedCounters {
  std::atomic<uint64_t> rows_total{0}, rows_placed_total{0};
  std::atomic<uint64_t> rows_shared_total{0};
  std::atomic<uint64_t> row_errors_total{0}, busy_ns{0};
  std::atomic<uint64_t> groups_unsent{0}, groups_sent{0}, sending_ns{0};
  Histogram latency;
};

// A request's position in its job: epoch, then step, then arrival.
using RequestPosition = std::tuple<uint64_t, uint64_t, uint64_t>;
inline std::pair<uint64_t, uint64_t> StepOf(const RequestPosition& position) {
  return {std::get<0>(position), std::get<1>(position)};
}

// The sending counters of one job's groups.
struct SendingCounters {
  std::atomic<uint64_t> groups_unsent{0}, ns{0};
};

// A group passes through these phases in this order. A group that found no room
// on its device goes back to kPlanned.
enum class Phase {
  kPlanned,  // lacks its buffer or its stage
  kOpening,  // a thread obtains both, without the lock
  kOpen,     // its rows may begin
};

// A Credit counts as one of its stream's unsent groups while it lives.
class Credit {
 public:
  explicit Credit(std::shared_ptr<std::atomic<uint32_t>> held)
      : held_(std::move(held)) {
    held_->fetch_add(1);
  }
  ~Credit() { held_->fetch_sub(1); }

 private:
  const std::shared_ptr<std::atomic<uint32_t>> held_;
};

// The room that a group occupies: one of its stream's unsent groups, and a
// buffer of the pool. Dropping it gives both back.
struct GroupRoom {
  explicit GroupRoom(std::shared_ptr<WakeSignal> w) : wake(std::move(w)) {}
  GroupRoom(GroupRoom&&) = default;
  ~GroupRoom() {
    credit.reset();  // before the buffer's release, which wakes a thread
    if (placed && wake != nullptr) wake->Notify();
  }

  std::shared_ptr<WakeSignal> wake;      // nullptr: moved from
  std::shared_ptr<const Credit> credit;  // one per stream in a stage
  PooledBuffer buffer;                   // empty if the group is placed
  bool placed = false;                   // its rows go to its request's memory
};

struct SharedStage;  // device_stages.h

// A group that is being computed, until it is delivered or dropped.
struct Group {
  Group(const Clock& c, std::shared_ptr<SharedCounters> s,
        std::shared_ptr<WakeSignal> w)
      : clock(c), counters(std::move(s)), room(std::move(w)) {}

  // Constant once open.
  const Clock& clock;
  const std::shared_ptr<SharedCounters> counters;
  std::shared_ptr<SendingCounters> sending;  // of its job
  GroupRoom room;
  std::shared_ptr<GroupSink> sink;
  uint64_t stream = 0, request_id = 0, group_id = 0, epoch = 0, step = 0;
  RequestPosition position;  // of its request
  MonotonicTime asked_at;
  std::vector<uint32_t> rows;
  std::vector<uint64_t> samples;
  std::vector<StoredSample> supplied;  // parallel to samples, or empty
  std::vector<uint64_t> absent;        // its request's
  std::vector<uint32_t> slots;
  std::vector<uint64_t> offsets;
  GroupOutputs outputs;
  // Destroyed in the reverse order.
  std::shared_ptr<const void> lease;
  std::shared_ptr<const SharedMemory> memory;
  std::shared_ptr<const RowWork> work;
  std::shared_ptr<SharedRows> shared;  // null: none of its rows are
  std::shared_ptr<SharedStage> stage;
  size_t first = 0;                              // its first row in the stage
  std::shared_ptr<ReadAhead::GroupReads> reads;  // nullptr: not read ahead
  std::vector<RowRecords> unwanted;              // of a dropped group
  std::shared_ptr<const TracedStep> trace;       // null: the step is not traced
  uint64_t span = 0;                             // the group's
  MonotonicTime planned_at{};                    // if it is traced
  // Guarded by the scheduler's lock until complete.
  Phase phase = Phase::kPlanned;
  size_t booked = 0;  // bytes of the pool, for the buffer that it lacks
  size_t begun = 0;   // rows begun; the first ones if nothing is read ahead
  size_t done = 0;
  bool dropped = false;
  size_t failed_at = 0;
  absl::Status status;
};

// A group from the moment it is handed to its sink until its last byte has been
// sent. Its destructor counts it, records its spans, and gives back its room,
// in this order. Takes no lock, except that of a SpanBuffer if the step is
// traced.
class SentGroup {
 public:
  // Takes from the group what is still needed.
  SentGroup(Group* group, size_t rows);
  ~SentGroup();

  std::span<const std::byte> payload() const { return room_.buffer.bytes(); }
  // Returns the time since its request arrived, at least 1.
  uint32_t took_us() const;

 private:
  // Records the spans of the group, which has been sent.
  void RecordSpans(MonotonicTime now) const;

  const Clock& clock_;
  const std::shared_ptr<SharedCounters> counters_;
  const std::shared_ptr<SendingCounters> sending_;  // of its job
  const GroupRoom room_;
  const size_t rows_;
  const bool failed_;
  const MonotonicTime asked_at_, planned_at_, sent_at_;
  const std::shared_ptr<const TracedStep> trace_;
  const uint64_t request_id_, span_;
};

inline bool IsStaged(const Group& group) {
  return group.work->groups().staged(group.outputs.device >= 0);
}
// Returns whether all rows of a group that has not begun could begin.
inline bool IsComplete(const Group& group) {
  return group.reads == nullptr || group.reads->all_ready();
}
// Makes the group's rows go to its buffer: field after field.
void UseBuffer(Group& group);
// Makes the group's rows go to their slots in its request's memory.
void UseMemory(Group& group);

}  // namespace leat::worker
