// SPDX-License-Identifier: Apache-2.0
//
// The scheduler's inside: its lock, what the lock guards, and what threads are
// given to do. Its parts have no locks of their own: ReadAhead (what is read
// next), RowQueue (which stream is next), GroupOpening (room for groups),
// DeviceStages (what devices compute) and ThreadWaits (why threads wait).
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "core/mutex.h"
#include "core/observe/stages.h"
#include "core/observe/tracing.h"
#include "worker/cache/idle_work.h"
#include "worker/scheduler/device_stages.h"
#include "worker/scheduler/group.h"
#include "worker/scheduler/group_opening.h"
#include "worker/scheduler/read_ahead.h"
#include "worker/scheduler/row_queue.h"
#include "worker/scheduler/scheduler.h"
#include "worker/scheduler/shared_rows.h"
#include "worker/scheduler/stream_groups.h"
#include "worker/scheduler/stream_state.h"
#include "worker/scheduler/thread_waits.h"

namespace leat::worker {

struct Scheduler::State {
  State(SchedulerOptions o, BufferPool* p, std::shared_ptr<WakeSignal> w,
        const Clock& c)
      : options(std::move(o)),
        pool(p),
        wake(std::move(w)),
        clock(c),
        shared_rows(options.shared_rows_bytes),
        read_ahead(options.read_threads, options.read_ahead_bytes),
        opening(options, pool, wake, counters, clock),
        waits(c.Now()) {}

  // A row of a group, and its records if it was read ahead.
  using TaskRow = ReadAhead::Taken;
  // Rows of one group to compute, groups to open, or a stage to finish.
  struct Task {
    Groups opens;
    std::shared_ptr<SharedStage> finishes;
    std::shared_ptr<Group> group;
    absl::InlinedVector<TaskRow, 1> rows;
    double charged_ns = 0;
  };

  // What became of a task's rows: the error of the first that failed.
  struct Computed {
    absl::Status status;
    size_t failed_at = 0;
    bool copied = false;  // the row was computed for another stream
    // Of the thread's time.
    uint64_t read_ns = 0, decode_ns = 0;
  };
  // A row that another stream's thread computes.
  class SharedRow;

  // Rows of a group that one thread reads, one after the other.
  struct ReadTask {
    std::shared_ptr<const RowWork> work;
    ReadAhead::Read read;
    std::vector<RowOf> rows;
    std::shared_ptr<const TracedStep> trace;  // the group's, and its span
    uint64_t span = 0;
  };

  // What is next of a stream: a row of a group, a group to open, or rows of an
  // ask to make a group of (`group` is the end of the stream's then).
  enum class Ready { kNothing, kRow, kGroup, kRequest };
  struct Next {
    Ready ready = Ready::kNothing;
    StreamGroups::Iterator group;
  };
  Next Look(const StreamState& stream) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Look, for the threads that read: returns a row to read, or a request.
  Next LookToRead(const StreamState& stream) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Whether a device has room for a group that goes to `device`.
  bool HasStage(const RowWork& work, int device) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  StreamState* Choose(Next* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  StreamState* ChooseIn(Job& job, Next* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Tells the job's queue, and the threads that read, which rows of the stream
  // are the first now.
  void Requeue(StreamState& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Whether the group's rows are there, as far as they will be before some are
  // taken.
  bool IsRipe(const StreamState& stream, const Group& group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  StreamState* ChooseToRead(Next* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Begins to open the group. False: `opens` has what a thread is to open,
  // without the lock.
  bool BeginOpening(StreamState& stream, const std::shared_ptr<Group>& group,
                    Groups* opens) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Gives groups their buffers and their stage.
  static void Open(State& state, Groups groups);
  // The group is open, planned again (a device has no room after all), or not
  // wanted any more. False: it has failed, and is to be delivered.
  bool EndOpening(const std::shared_ptr<Group>& group,
                  const absl::Status& status,
                  const std::shared_ptr<SharedStage>& stage)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool Begin(Task* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // What the end of a task's rows leads to.
  struct Ended {
    bool delivers = false;                  // its group
    std::shared_ptr<SharedStage> finishes;  // counts as in work from now on
  };
  Ended End(const Task& task, const Computed& computed, Duration spent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Nobody wants the rows of the group that have not begun.
  void Drop(StreamState& stream, Group& group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // How many of the group's rows one thread takes at a time, now.
  size_t RowsAtOnce(const StreamState& stream, const Group& group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool BeginRead(ReadTask* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Fewer records than rows if nobody wants them any more.
  std::vector<RowRecords> Read(const ReadTask& task) const;
  // Whether a thread sleeps that would find something to read.
  bool ReaderWanted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // To be called before what threads wait for changes.
  void NoteWaits(MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    waits.Note(now,
               {.decode_threads = decode_threads,
                .read_threads = read_threads,
                .tasks_in_work = tasks_in_work,
                .tasks_waiting = tasks_waiting,
                .rows_queued = rows_queued},
               read_ahead, jobs);
  }
  // Whether a row waits, is being read or computed, or is on a device.
  bool OwesRows() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return rows_queued > 0 || tasks_in_work > 0 || stages.owes();
  }
  // After any of these has changed.
  void NoteOwing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (options.idle != nullptr) options.idle->SetOwing(OwesRows());
  }
  Scheduler::JobRows Told(const std::string& name, const Job& job) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // So many more rows of the stream were asked for and not begun, or fewer.
  void AddQueued(StreamState& stream, ptrdiff_t rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // The rows, one after the other, whether or not some of them fail. nullopt:
  // another thread has the task, and ends it.
  static std::optional<Computed> Compute(const std::shared_ptr<State>& state,
                                         Task* task, ThreadState* thread);
  static std::optional<Computed> ComputeShared(
      const std::shared_ptr<State>& state, Task* task, ThreadState* thread);
  static absl::Status ComputeRow(const Group& group, const TaskRow& row,
                                 ThreadState* thread);
  // Ends a task of rows, and delivers its group if that is complete.
  static void EndTask(const std::shared_ptr<State>& state, Task task,
                      const Computed& computed, Duration spent);
  // Hands a group that nobody writes to any more to its sink.
  static void Deliver(std::shared_ptr<Group> ended);
  // Has a stage finish its rows; delivers its groups then.
  static void Finish(std::shared_ptr<State> state,
                     std::shared_ptr<SharedStage> shared);

  const SchedulerOptions options;
  BufferPool* const pool;
  const std::shared_ptr<WakeSignal> wake;
  const Clock& clock;
  const std::shared_ptr<SharedCounters> counters =
      std::make_shared<SharedCounters>();
  std::atomic<bool> stopping{false};
  WakeSignal reading;  // of the threads that read
  SharedRowsTable shared_rows;
  StageClocks decode_clocks{clock}, read_clocks{clock};

  mutable Mutex mu;
  ReadAhead read_ahead ABSL_GUARDED_BY(mu);
  CondVar progress;  // a row, a request, a stage or a thread has ended
  std::map<std::string, Job> jobs ABSL_GUARDED_BY(mu);
  absl::flat_hash_map<uint64_t, std::unique_ptr<StreamState>> streams
      ABSL_GUARDED_BY(mu);
  GroupOpening opening ABSL_GUARDED_BY(mu);
  DeviceStages stages ABSL_GUARDED_BY(mu);
  ThreadWaits waits ABSL_GUARDED_BY(mu);
  double floor ABSL_GUARDED_BY(mu) = 0;
  uint64_t next_stream ABSL_GUARDED_BY(mu) = 1;
  uint64_t next_arrival ABSL_GUARDED_BY(mu) = 1;
  size_t rows_queued ABSL_GUARDED_BY(mu) = 0;
  // Tasks of rows and of groups to open: as many threads have them.
  size_t tasks_in_work ABSL_GUARDED_BY(mu) = 0;
  // Those of them whose row another thread computes; may be less than 0 for a
  // moment.
  int64_t tasks_waiting ABSL_GUARDED_BY(mu) = 0;
  int decode_threads ABSL_GUARDED_BY(mu) = 0;  // that have not ended
  int read_threads ABSL_GUARDED_BY(mu) = 0;
  int readers_idle ABSL_GUARDED_BY(mu) = 0;
};

}  // namespace leat::worker
