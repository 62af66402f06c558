// SPDX-License-Identifier: Apache-2.0
//
// The scheduler's inside: asks, groups, streams, jobs. Used by scheduler*.cc
// only.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "core/mutex.h"
#include "core/stages.h"
#include "core/tracing.h"
#include "worker/row_queue.h"
#include "worker/scheduler.h"
#include "worker/shared_rows.h"

namespace leat::worker {

// Counters that outlive streams and scheduler: the last touch of a buffer may
// be gRPC's.
struct SharedCounters {
  std::atomic<uint64_t> rows_total{0}, rows_placed_total{0};
  std::atomic<uint64_t> rows_shared_total{0};
  std::atomic<uint64_t> row_errors_total{0}, busy_ns{0};
  std::atomic<uint64_t> groups_unsent{0}, groups_sent{0}, sending_ns{0};
  Histogram latency;
};

// What a job has under way from storage. Guarded by the scheduler's lock; it
// outlives the job while records are being read.
struct ReadAccount {
  int threads = 0;
  uint64_t bytes = 0;  // read and not taken; being read, by the mean
  // Moving averages of one row.
  double mean_bytes = 128 << 10;
  double mean_ns = 1e6;
};

// The records of a group's rows. Shared with the threads that read them, so
// that a group that is dropped waits for none of them. Guarded by the
// scheduler's lock.
struct GroupReads {
  std::shared_ptr<ReadAccount> account;
  std::vector<RowRecords> records;   // by row; of those that are ready
  std::set<size_t> ready;            // rows that were read and not begun
  size_t asked = 0;                  // rows before it were given to a thread
  std::atomic<bool> dropped{false};  // also read without the lock
  // As the group's; constant.
  std::shared_ptr<const TracedStep> trace;
  uint64_t span = 0;
};

// Where an ask stands in its job: epoch, then step, then arrival.
using Position = std::tuple<uint64_t, uint64_t, uint64_t>;

// A group passes through these in this order. One that found no room on its
// device goes back to kPlanned.
enum class Phase {
  kPlanned,  // lacks its buffer or its stage
  kOpening,  // a thread sees to both, without the lock
  kOpen,     // its rows may begin
};

// One of a stream's unsent groups.
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

struct Group;

// What a device computes together: groups of one work, perhaps of several
// streams and asks, whose rows go to one kind of memory. It and its groups hold
// each other: who takes it from State::stages parts them.
struct SharedStage {
  // Constant once open.
  std::shared_ptr<const RowWork> work;
  std::vector<uint64_t> offsets;   // group after group
  std::vector<RowTarget> targets;  // by row; of several groups
  GroupOutputs outputs;
  std::unique_ptr<GroupStage> stage;
  // Guarded by the scheduler's lock until no row is left.
  std::vector<std::shared_ptr<Group>> groups;  // that are wanted
  std::vector<size_t> unwanted;                // rows
  size_t left = 0;  // rows that are neither prepared nor unwanted
};

// A group being computed, then lent. Dropping it gives its buffer back.
struct Group {
  Group(const Clock& c, std::shared_ptr<SharedCounters> s,
        std::shared_ptr<WakeSignal> w)
      : clock(c), counters(std::move(s)), wake(std::move(w)) {}
  ~Group() {
    if (sent) CountSent();
    credit.reset();  // before the buffer's release, which wakes a thread
    if (placed) wake->Notify();
  }

  void CountSent() const {
    const MonotonicTime now = clock.Now();
    counters->latency.Add(now - asked_at, rows.size());
    counters->sending_ns += static_cast<uint64_t>(
        std::max(Duration(now - sent_at), Duration(0)).count());
    ++counters->groups_sent;
    --counters->groups_unsent;
    if (trace != nullptr) [[unlikely]]
      RecordSpans(now);
  }
  // The group's, which has been sent.
  void RecordSpans(MonotonicTime now) const;

  // Constant once open.
  const Clock& clock;
  const std::shared_ptr<SharedCounters> counters;
  const std::shared_ptr<WakeSignal> wake;
  std::shared_ptr<const Credit> credit;  // shared in a stage, by its stream
  std::shared_ptr<GroupSink> sink;       // until it is delivered
  uint64_t stream = 0, ask_id = 0, group_id = 0, epoch = 0, step = 0;
  Position position;  // of its ask
  MonotonicTime asked_at;
  std::vector<uint32_t> rows;
  std::vector<uint64_t> samples;
  std::vector<StoredSample> brought;  // parallel to samples, or empty
  std::vector<uint64_t> absent;       // as its ask's
  std::vector<uint32_t> places;
  bool placed = false;
  PooledBuffer buffer;  // of a group that is not placed
  std::vector<uint64_t> offsets;
  GroupOutputs outputs;
  // Until it is delivered or forgotten; destroyed in the reverse order.
  std::shared_ptr<const void> lease;
  std::shared_ptr<const LentMemory> memory;
  std::shared_ptr<const RowWork> work;
  std::shared_ptr<SharedRows> shared;  // null: none of its rows are
  std::shared_ptr<SharedStage> stage;
  size_t first = 0;                         // row of the stage
  std::shared_ptr<GroupReads> reads;        // null: not read ahead
  std::vector<RowRecords> unwanted;         // of a dropped group
  std::shared_ptr<const TracedStep> trace;  // null: the step is not traced
  uint64_t span = 0;                        // the group's
  MonotonicTime planned_at{};               // if it is traced
  // Guarded by the scheduler's lock until complete.
  Phase phase = Phase::kPlanned;
  size_t booked = 0;  // bytes of the pool, for the buffer that it lacks
  size_t begun = 0;   // as many; the first ones, where nothing is read ahead
  size_t done = 0;
  bool dropped = false;
  bool sent = false;  // handed to its sink, at `sent_at`
  MonotonicTime sent_at{};
  size_t failed_at = 0;
  absl::Status status;
};

inline int DeviceOf(const RowAsk& ask) {
  return ask.memory == nullptr ? -1 : ask.memory->device();
}
inline bool IsStaged(const Group& group) {
  return group.work->staged(group.outputs.device >= 0);
}
// Whether all rows of a group that has not begun could.
inline bool IsComplete(const Group& group) {
  return group.reads == nullptr ||
         group.reads->ready.size() == group.rows.size();
}
// The rows of a group in a buffer of their own: field after field.
void UseBuffer(Group& group);

// A group of an ask, in the order of their beginning.
using GroupPlace = std::pair<Position, uint64_t>;
using GroupMap = std::map<GroupPlace, std::shared_ptr<Group>>;

struct PendingAsk {
  RowAsk ask;
  MonotonicTime asked_at;
  size_t next = 0;  // rows before it are in groups
};

// The fewest rows ahead first; then the earliest epoch and step; then the id.
using ReadPlace = std::tuple<size_t, RowQueue::Step, uint64_t>;

struct Job;

struct StreamState : RowQueue::Place {
  uint64_t id = 0;
  Job* job = nullptr;
  std::shared_ptr<const RowWork> work;
  std::shared_ptr<GroupSink> sink;
  size_t row_bytes = 0;
  size_t rows_per_group = 1;
  size_t max_groups = 1;                              // in work or not sent
  std::map<Position, PendingAsk> asks;                // with rows to group
  GroupMap groups;                                    // with rows to begin
  absl::flat_hash_map<uint64_t, Position> positions;  // by ask_id
  std::shared_ptr<std::atomic<uint32_t>> held =
      std::make_shared<std::atomic<uint32_t>>(0);
  uint64_t next_group_id = 1;
  size_t rows_queued = 0;
  bool ahead = false;     // its rows are read ahead
  size_t rows_ready = 0;  // read and not begun
  size_t rows_ahead = 0;  // these, and those being read
  // Its place among those that have rows to read; none: it is not one of them.
  std::optional<ReadPlace> to_read;
  bool opening = false;                // one of its groups: another waits
  std::shared_ptr<SharedRows> shared;  // null: none of its rows are
};

struct Job {
  double vtime = 0;
  double mean_ns = 500e3;  // a row, moving average
  bool eligible = false;
  std::shared_ptr<ReadAccount> reads = std::make_shared<ReadAccount>();
  size_t booked = 0;  // bytes of the pool, by groups that are read ahead
  uint64_t rows_total = 0, rows_shared_total = 0;  // as Scheduler::JobRows
  std::map<uint64_t, StreamState*> streams;
  uint64_t steps_per_epoch = 0;
  RowQueue queue;  // the streams that have groups, or rows to make groups of
  std::map<ReadPlace, StreamState*> to_read;
};

struct Scheduler::State {
  State(SchedulerOptions o, BufferPool* p, std::shared_ptr<WakeSignal> w,
        const Clock& c)
      : options(std::move(o)),
        pool(p),
        wake(std::move(w)),
        clock(c),
        shared_rows(options.shared_rows_bytes),
        waits_at(c.Now()) {}

  using Groups = std::vector<std::shared_ptr<Group>>;

  // Rows of one group to compute, groups to open, or a stage to finish.
  struct TaskRow {
    size_t index = 0;    // in the group
    RowRecords records;  // of a row that was read ahead
  };
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
  };
  // A row that another stream's thread computes.
  class SharedRow;

  // Rows of a group that one thread reads, one after the other.
  struct ReadTask {
    uint64_t stream = 0;
    std::shared_ptr<const RowWork> work;
    std::shared_ptr<GroupReads> reads;
    size_t first = 0;
    std::vector<RowOf> rows;
    uint64_t reserved = 0;  // bytes, by the mean
  };

  // What is next of a stream: a row of a group, a group to open, or rows of an
  // ask to make a group of (`group` is the end of the stream's then).
  enum class Ready { kNothing, kRow, kGroup, kAsk };
  struct Next {
    Ready ready = Ready::kNothing;
    GroupMap::const_iterator group;
    std::pair<uint64_t, uint64_t> step;  // after its epoch
  };
  Next Look(const StreamState& stream) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Look, for the threads that read: returns a row to read, or an ask.
  Next LookToRead(const StreamState& stream) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  static GroupMap::const_iterator FirstUnread(const StreamState& stream);
  static Next NextOf(Ready ready, const StreamState& stream,
                     GroupMap::const_iterator group);
  // Whether there is room for a group of up to `rows` of the stream's first
  // ask; `credited`: it counts with another one of the stream.
  bool MayPlan(const StreamState& stream, size_t rows, bool credited) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Whether a device has room for a group that goes to `device`.
  bool HasStage(const RowWork& work, int device) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  StreamState* Choose(Next* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  StreamState* ChooseIn(Job& job, Next* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Tells the job's queue which rows of the stream are the first now, and gives
  // the stream its place among those that have rows to read.
  static void Requeue(StreamState& stream);
  static void RequeueToRead(StreamState& stream);
  double BytesLeft() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Whether the job may have more bytes on their way.
  bool HasBytesLeft(const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool IsShortOfBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);  // some job
  bool MayRead(const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Whether the group's rows are there, as far as they will be before some are
  // taken.
  bool IsRipe(const StreamState& stream, const Group& group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  StreamState* ChooseToRead(Next* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Makes a group of the next rows of the stream's first ask: `rows` at most.
  GroupMap::iterator Plan(StreamState& stream, size_t rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Books the group's buffer, if it needs one.
  void Reserve(StreamState& stream, Group& group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Opens the group if it wants no more than what is at hand. False: `opens`
  // has what a thread is to open, without the lock.
  bool OpenAtOnce(StreamState& stream, const std::shared_ptr<Group>& group,
                  Groups* opens) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Adds to the group of `stream` what a device may compute with it.
  void Join(StreamState& stream, Groups* groups)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Gives groups their buffers and their stage.
  static void Open(State& state, Groups groups);
  // The group is open, planned again (a device has no room after all), or not
  // wanted any more. False: it has failed, and is to be delivered.
  bool EndOpening(const std::shared_ptr<Group>& group,
                  const absl::Status& status,
                  const std::shared_ptr<SharedStage>& stage)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Nobody wants the group, of which `rows` have not begun.
  void LeaveStage(Group& group, size_t rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool Begin(Task* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // All rows of the group have begun, or never will.
  void Leave(StreamState& stream, GroupMap::const_iterator it)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // What the end of a task's rows leads to.
  struct Ended {
    bool delivers = false;                  // its group
    std::shared_ptr<SharedStage> finishes;  // counts as in work from now on
  };
  Ended End(const Task& task, const Computed& computed, Duration spent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // The groups of an ask, to be dropped without the lock.
  std::vector<std::shared_ptr<Group>> DropGroups(StreamState& stream,
                                                 const Position& position)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Nobody wants the rows of the group that have not begun.
  void Drop(StreamState& stream, Group& group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Nobody wants the group's records any more.
  void ForgetReads(StreamState& stream, Group& group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // How many of the group's rows one thread takes at a time, now.
  size_t RowsAtOnce(const StreamState& stream, const Group& group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Takes the first row that is ready.
  TaskRow TakeReady(StreamState& stream, Group& group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool BeginRead(ReadTask* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Fewer records than rows if nobody wants them any more.
  std::vector<RowRecords> Read(const ReadTask& task) const;
  // Takes the records, if they are wanted.
  void EndRead(const ReadTask& task, std::vector<RowRecords>& records,
               Duration spent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Whether a thread sleeps that would find something to read.
  bool ReaderWanted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // What the threads waited for since it was called last, as things stand: to
  // be called before that changes. Costs the same however much there is.
  void NoteWaits(MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
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
  static void Deliver(std::shared_ptr<Group> group);
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
  CondVar progress;  // a row, an ask, a stage or a thread has ended
  std::map<std::string, Job> jobs ABSL_GUARDED_BY(mu);
  absl::flat_hash_map<uint64_t, std::unique_ptr<StreamState>> streams
      ABSL_GUARDED_BY(mu);
  bool stage_opening ABSL_GUARDED_BY(mu) = false;  // some stage
  absl::flat_hash_set<std::shared_ptr<SharedStage>> stages
      ABSL_GUARDED_BY(mu);  // with rows left
  // Whose last rows were withdrawn.
  std::deque<std::shared_ptr<SharedStage>> to_finish ABSL_GUARDED_BY(mu);
  double floor ABSL_GUARDED_BY(mu) = 0;
  uint64_t next_stream ABSL_GUARDED_BY(mu) = 1;
  uint64_t next_arrival ABSL_GUARDED_BY(mu) = 1;
  size_t rows_queued ABSL_GUARDED_BY(mu) = 0;
  // Tasks of rows and of groups to open: as many threads have them.
  size_t tasks_in_work ABSL_GUARDED_BY(mu) = 0;
  // Those of them whose row another thread computes; may be less than 0 for a
  // moment.
  int64_t tasks_waiting ABSL_GUARDED_BY(mu) = 0;
  size_t stages_in_work ABSL_GUARDED_BY(mu) = 0;  // being finished
  size_t streams_ahead ABSL_GUARDED_BY(mu) = 0;   // that read ahead
  size_t booked ABSL_GUARDED_BY(mu) = 0;          // as Job's, of all
  int decode_threads ABSL_GUARDED_BY(mu) = 0;     // that have not ended
  int read_threads ABSL_GUARDED_BY(mu) = 0;
  int readers_running ABSL_GUARDED_BY(mu) = 0;
  int readers_idle ABSL_GUARDED_BY(mu) = 0;
  uint64_t bytes_ahead ABSL_GUARDED_BY(mu) = 0;
  MonotonicTime waits_at ABSL_GUARDED_BY(mu);
  Scheduler::Stats::Waits decode_waits ABSL_GUARDED_BY(mu);
  Scheduler::Stats::Waits read_waits ABSL_GUARDED_BY(mu);
};

}  // namespace leat::worker
