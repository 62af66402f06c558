// SPDX-License-Identifier: Apache-2.0
//
// The scheduler's internals: its lock, the data that the lock guards, and the
// tasks that threads are given. Its parts have no locks: ReadAhead (what is
// read next), RowQueue (which stream is next), GroupOpening (room for groups),
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

  // The result of a task's rows: the error of the first that failed.
  struct Computed {
    absl::Status status;
    size_t failed_at = 0;
    bool copied = false;  // the row was computed for another stream
    // The thread's time.
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

  // The next work of a stream: a row of a group, a group to open, or rows of a
  // request to make a group of (`group` is then the end of the stream's
  // groups).
  enum class Ready { kNothing, kRow, kGroup, kRequest };
  struct Next {
    Ready ready = Ready::kNothing;
    StreamGroups::Iterator group;
  };
  Next Look(const StreamState& stream) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Like Look, for the threads that read: returns a row to read, or a request.
  Next LookToRead(const StreamState& stream) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // True if a device has room for a group that goes to `device`.
  bool HasStage(const RowWork& work, int device) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  StreamState* Choose(Next* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  StreamState* ChooseIn(Job& job, Next* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Tells the job's queue, and the threads that read, which rows of the stream
  // are the first now.
  void Requeue(StreamState& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // True if the group has all the records that it can get before some are
  // taken.
  bool IsRipe(const StreamState& stream, const Group& group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  StreamState* ChooseToRead(Next* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Begins to open the group. Returns false if a thread is to open the groups
  // in `opens`, without the lock.
  bool BeginOpening(StreamState& stream, const std::shared_ptr<Group>& group,
                    Groups* opens) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Gives groups their buffers and their stage.
  static void Open(State& state, Groups groups);
  // Opens the group, unless a device has no room after all (it is planned
  // again) or it is not wanted any more. Returns false if it has failed and is
  // to be delivered.
  bool EndOpening(const std::shared_ptr<Group>& group,
                  const absl::Status& status,
                  const std::shared_ptr<SharedStage>& stage)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool Begin(Task* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // The effects of the end of a task's rows.
  struct Ended {
    bool delivers = false;                  // its group is complete
    std::shared_ptr<SharedStage> finishes;  // counts as in work from now on
  };
  Ended End(const Task& task, const Computed& computed, Duration spent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // The rows of the group that have not begun are not wanted any more.
  void Drop(StreamState& stream, Group& group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Returns how many of the group's rows one thread takes at a time, now.
  size_t RowsAtOnce(const StreamState& stream, const Group& group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool BeginRead(ReadTask* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Returns fewer records than rows if they are not wanted any more.
  std::vector<RowRecords> Read(const ReadTask& task) const;
  // True if a sleeping thread would find something to read.
  bool ReaderWanted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // To be called before a change of what threads wait for.
  void NoteWaits(MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    waits.Note(now,
               {.decode_threads = decode_threads,
                .read_threads = read_threads,
                .tasks_in_work = tasks_in_work,
                .tasks_waiting = tasks_waiting,
                .rows_queued = rows_queued},
               read_ahead, jobs);
  }
  // True if a row waits, is being read or computed, or is on a device.
  bool OwesRows() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return rows_queued > 0 || tasks_in_work > 0 || stages.owes();
  }
  // To be called after any of these has changed.
  void NoteOwing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (options.idle != nullptr) options.idle->SetOwing(OwesRows());
  }
  Scheduler::JobRows Told(const std::string& name, const Job& job) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Counts `rows` more (or fewer) rows of the stream as requested and not
  // begun.
  void AddQueued(StreamState& stream, ptrdiff_t rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Computes the rows, one after the other, whether or not some of them fail.
  // nullopt: another thread has taken the task, and ends it.
  static std::optional<Computed> Compute(const std::shared_ptr<State>& state,
                                         Task* task, ThreadState* thread);
  static std::optional<Computed> ComputeShared(
      const std::shared_ptr<State>& state, Task* task, ThreadState* thread);
  static absl::Status ComputeRow(const Group& group, const TaskRow& row,
                                 ThreadState* thread);
  // Ends a task of rows, and delivers its group if that is complete.
  static void EndTask(const std::shared_ptr<State>& state, Task task,
                      const Computed& computed, Duration spent);
  // Hands a group that is not written to any more to its sink.
  static void Deliver(std::shared_ptr<Group> ended);
  // Makes a stage finish its rows; delivers its groups then.
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
  // Tasks of rows and of groups to open; each has one thread.
  size_t tasks_in_work ABSL_GUARDED_BY(mu) = 0;
  // Those tasks whose row another thread computes; may be below 0 for a moment.
  int64_t tasks_waiting ABSL_GUARDED_BY(mu) = 0;
  int decode_threads ABSL_GUARDED_BY(mu) = 0;  // that have not ended
  int read_threads ABSL_GUARDED_BY(mu) = 0;
  int readers_idle ABSL_GUARDED_BY(mu) = 0;
};

}  // namespace leat::worker
