// SPDX-License-Identifier: Apache-2.0
//
// Scheduler: the decode threads, and which rows each of them computes next:
// one, or as many of a group as it computes in 50 µs.
//
// The next row is of the job that has had the least time; in it of the stream
// that has had the least time, or of another stream of the job whose earliest
// step is before that one's by up to `cohort_steps` (hosts of one training run
// advance together: the step that is needed first goes first); in the stream,
// of the earliest step. Time is start-time fair queueing's virtual time: who
// was idle gets no credit for it.
//
// Rows are computed in groups, straight into a buffer of the pool, or into the
// memory that their request names. A stream has at most
// `max_unsent_groups_per_stream` groups, or as many as keep all threads busy
// and one more, from the first row to the last byte sent; at that limit it gets
// no new group until its peer has read one, and nobody else waits: a quarter of
// the pool is kept for streams that hold none.
//
// Rows of work that reads ahead wait for storage on threads of their own. These
// make the groups, in the same order, and read their rows; a row is computed
// when it has been read, and any row of a group may be the first. A group's
// buffer, and its place on a device, are taken when its records are there, so
// that storage that hangs holds neither. Between jobs, the one with the fewest
// threads is served first, and none has more threads, more bytes that were read
// and not yet taken, or more buffers that wait for records, than are left to
// the others. What was read waits for a decode thread and a device and for
// nothing else, so the bytes come back whatever consumers do.
//
// Buffers get their memory, and devices begin groups, without the scheduler's
// lock, on the decode thread that opens the group; its stream opens no other
// one meanwhile. A group for which there is no memory fails.
//
// Rows of staged work are prepared by the decode threads, and then finished by
// a stage, which takes no thread and is charged to nobody. A stage takes the
// groups of as many requests and streams of the job as wait when it is opened;
// each keeps its buffer, its answer and its error. A stream's groups in one
// stage count as one unsent group.
//
// A row that several streams ask for is computed once
// (worker/scheduler/shared_rows.h), unless it is staged, or takes so little
// time that a thread takes several at once. While a thread computes it, others
// that come to it leave it to that thread and take another row; it is charged
// with what its copy took.
//
// The lease of a request is dropped, without locks, when the last of its groups
// has been delivered or forgotten, and after its stage has been destroyed.
//
// Thread safety: all methods from any thread, but none from GroupSink::OnGroup
// and from a lease's destructor.
// A choice costs the logarithm of the number of the job's streams, for each job
// that has any, and a look at each stream before the chosen one that has to
// wait (worker/scheduler/row_queue.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "core/observe/stages.h"
#include "worker/compute/buffer_pool.h"
#include "worker/compute/histogram.h"
#include "worker/compute/row_work.h"

namespace leat::worker {

class IdleWork;

struct SchedulerOptions {
  int threads = 1;               // 0: the owner calls RunOne (tests)
  size_t group_bytes = 1 << 20;  // a group's payload; one row if that is larger
  size_t max_rows_per_group = 1024;
  // Groups are a multiple of it where they can hold that many: what a device
  // computes at the same time.
  size_t rows_at_once = 1;
  uint32_t max_unsent_groups_per_stream = 8;
  size_t max_rows_per_stream = 2 << 20;  // waiting
  size_t max_rows_total = 8 << 20;
  size_t max_streams = 4096;
  uint64_t cohort_steps = 64;
  // Threads that read ahead, begun with the first stream that wants them; fewer
  // where the system gives no more. 0: the decode threads read.
  int read_threads = 0;
  // What they may have read that is not taken yet, or are reading (by the mean
  // of the job's records). A job that has nothing may read one more record, or
  // a few small ones.
  uint64_t read_ahead_bytes = 256 << 20;
  // Of finished rows that are kept for other streams
  // (worker/scheduler/shared_rows.h).
  uint64_t shared_rows_bytes = 64 << 20;
  std::function<std::unique_ptr<ThreadState>()> make_thread_state;
  // Told when the first row is asked for and when the last one has been
  // computed; outlives the scheduler. Null: nobody is.
  IdleWork* idle = nullptr;
};

class Scheduler {
 public:
  using StreamId = uint64_t;

  // `pool` was made with `wake`. Both, and `clock`, outlive the scheduler.
  // `started` says whether it has its decode threads; else only destroy it.
  Scheduler(SchedulerOptions options, BufferPool* pool,
            std::shared_ptr<WakeSignal> wake, const Clock& clock);
  ~Scheduler();  // stops, however long it takes

  // kResourceExhausted: a decode thread cannot be had.
  const absl::Status& started() const { return started_; }

  // kResourceExhausted: max_streams are open, a row is larger than the pool, or
  // no thread that reads ahead can be had.
  absl::StatusOr<StreamId> OpenStream(std::shared_ptr<const RowWork> work,
                                      std::shared_ptr<GroupSink> sink);
  // kResourceExhausted: too many rows wait. kInvalidArgument: no rows, sizes
  // differ, an request_id that is in use, places that the memory does not have,
  // a device's memory for work without stages. kNotFound: the stream is closed.
  absl::Status Ask(StreamId stream, RowRequest request);
  // Withdraws a request: rows not begun are forgotten, and so are groups that
  // are not complete. An unknown request is ignored.
  void Cancel(StreamId stream, uint64_t request_id);
  // Forgets the stream. Groups in work are dropped; OnGroup may still run while
  // this returns, not for groups that begin later. Unknown streams are ignored.
  void CloseStream(StreamId stream);

  // Computes or prepares one row on the calling thread, or a few small ones of
  // one group. False: nothing to do now.
  bool RunOne(ThreadState* state);
  // What was at work still when the time was over.
  struct Left {
    int decode_threads = 0;  // in a row
    int read_threads = 0;    // in storage
    size_t stages = 0;       // on a device
    bool none() const {
      return decode_threads == 0 && read_threads == 0 && stages == 0;
    }
  };
  // Stops the threads after the rows in work and the records that are being
  // read, and waits for them and for the stages that are being finished, until
  // `deadline`. Idempotent.
  // What is left goes on by itself, and needs this object and all that it was
  // made with: then end the process without destroying them (std::_Exit), or
  // call Stop again.
  Left Stop(MonotonicTime deadline = MonotonicTime::max());

  // Rows of a job since it has had a stream without a break, and what they
  // took.
  struct JobRows {
    std::string job;
    uint64_t rows_total = 0;         // that were computed or shared
    uint64_t rows_shared_total = 0;  // of these
    // What the next of its rows waited for.
    uint64_t input_ns = 0;   // that its record is read
    uint64_t thread_ns = 0;  // a decode thread
    uint64_t output_ns = 0;  // room
    // Time of threads.
    uint64_t read_ns = 0, decode_ns = 0;  // of decode threads
    uint64_t fetch_ns = 0;                // of those that read ahead
    // As Stats has them of all jobs.
    uint64_t sending_ns_total = 0, groups_unsent = 0, streams = 0;
  };
  struct Stats {
    uint64_t rows_total = 0;
    uint64_t rows_placed_total = 0;  // of rows_total: into shared memory
    uint64_t rows_shared_total = 0;  // of rows_total: computed for another
    uint64_t shared_bytes = 0;       // of rows kept for other streams
    std::vector<JobRows> jobs;       // that have streams
    uint64_t row_errors_total = 0;
    uint64_t rows_queued = 0;  // asked, not begun
    uint64_t streams = 0;
    uint64_t rows_ahead = 0;   // being read, or read and not begun
    uint64_t bytes_ahead = 0;  // of these
    uint64_t busy_ns_total = 0;
    Histogram::Snapshot latency;  // from asked to sent, by row

    // Where the threads' time went: what they did, and why they waited.
    struct Waits {
      uint64_t idle_ns = 0;    // nothing was asked for
      uint64_t input_ns = 0;   // all that was asked for was being read
      uint64_t output_ns = 0;  // there was no room for what could begin
    };
    StageTimes decode_stages, read_stages;  // of the threads of each kind
    Waits decode_waits, read_waits;
    int readers = 0;        // threads that read ahead, which have begun
    size_t read_depth = 0;  // rows that were asked for and not read
    // Groups that were finished, and those whose last byte has been sent.
    uint64_t groups_unsent = 0, groups_sent_total = 0;
    uint64_t sending_ns_total = 0;  // of those that were sent, all together
    uint64_t groups_unsent_limit = 0;
  };
  Stats stats() const;
  int threads() const;
  // Waits until no row waits or is in work, and no stage is being finished.
  // False: not by `deadline`.
  bool WaitIdle(MonotonicTime deadline);

 private:
  struct State;
  // Reads rows on the calling thread. False: nothing to do now; the thread
  // counts as idle then, until it comes again with `was_idle`.
  bool ReadSome(bool was_idle);
  absl::Status StartReading();
  absl::Status StartReader(int number)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(readers_mu_);
  void DecodeLoop();
  void ReadLoop();

  std::shared_ptr<State> state_;  // shared with stages being finished
  std::vector<std::thread> threads_;
  absl::Status started_;
  Mutex readers_mu_;
  std::vector<std::thread> readers_ ABSL_GUARDED_BY(readers_mu_);
};

}  // namespace leat::worker
