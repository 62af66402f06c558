// SPDX-License-Identifier: Apache-2.0
//
// Scheduler: runs the decode threads and decides which rows each of them
// computes next: one, or as many of a group as it computes in 50 µs.
//
// The next row belongs to the job that has had the least time. Within the job,
// it belongs to the stream that has had the least time, or to another stream of
// the job whose earliest step is before that one's by up to `cohort_steps`
// (hosts of one training run advance together: the step that is needed first
// goes first). Within the stream, it is of the earliest step. Time is
// start-time fair queueing's virtual time: a stream or job that was idle gets
// no credit for it.
//
// Rows are computed in groups, straight into a buffer of the pool, or into the
// memory that their request names. A stream has at most
// `max_unsent_groups_per_stream` groups, or as many as keep all threads busy
// and one more, from the first row to the last byte sent. At that limit it gets
// no new group until its peer has read one, and no other stream waits: a
// quarter of the pool is kept for streams that hold none.
//
// Rows of work that reads ahead wait for storage on separate threads. These
// make the groups, in the same order, and read their rows; a row is computed
// when it has been read, and any row of a group may be the first. A group's
// buffer, and its slot on a device, are taken when its records are there, so
// that storage that hangs holds neither. Between jobs, the one with the fewest
// threads is served first, and none has more threads, more bytes that were read
// and not yet taken, or more buffers that wait for records, than are left to
// the others. Rows that were read wait only for a decode thread and a device,
// so the bytes come back whatever consumers do.
//
// Buffers get their memory, and devices begin groups, without the scheduler's
// lock, on the decode thread that opens the group; its stream opens no other
// group meanwhile. A group for which there is no memory fails.
//
// Rows of staged work are prepared by the decode threads, and then finished by
// a stage, which takes no thread and is charged to no job. A stage takes the
// groups of as many requests and streams of the job as wait when it is opened;
// each group keeps its buffer, its answer and its error. A stream's groups in
// one stage count as one unsent group.
//
// A row that several streams request is computed once
// (worker/scheduler/shared_rows.h), unless it is staged, or takes so little
// time that a thread takes several at once. While a thread computes it, other
// threads that reach the row leave it to that thread and take another row; each
// stream is charged with the time of its copy.
//
// The lease of a request is dropped, without locks, when the last of its groups
// has been delivered or forgotten, and after its stage has been destroyed.
//
// Thread safety: all methods may be called on any thread, but not from
// GroupSink::OnGroup or from a lease's destructor. A choice costs the logarithm
// of the number of the job's streams, for each job that has any, and a look at
// each stream before the chosen one that has to wait
// (worker/scheduler/row_queue.h).
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
  // Groups are a multiple of this if they can hold that many: the number of
  // rows that a device computes at the same time.
  size_t rows_at_once = 1;
  uint32_t max_unsent_groups_per_stream = 8;
  size_t max_rows_per_stream = 2 << 20;  // that wait
  size_t max_rows_total = 8 << 20;
  size_t max_streams = 4096;
  uint64_t cohort_steps = 64;
  // Threads that read ahead, started with the first stream that needs them;
  // fewer if the system gives no more. 0: the decode threads read.
  int read_threads = 0;
  // Limits the bytes that these threads are reading (by the mean of the job's
  // records) or have read and that are not taken yet. A job that has nothing
  // may read one more record, or a few small ones.
  uint64_t read_ahead_bytes = 256 << 20;
  // Limits the bytes of finished rows that are kept for other streams
  // (worker/scheduler/shared_rows.h).
  uint64_t shared_rows_bytes = 64 << 20;
  std::function<std::unique_ptr<ThreadState>()> make_thread_state;
  // Is notified when the first row is requested and when the last one has been
  // computed; outlives the scheduler. May be nullptr.
  IdleWork* idle = nullptr;
};

class Scheduler {
 public:
  using StreamId = uint64_t;

  // `pool` was made with `wake`. Both, and `clock`, outlive the scheduler. If
  // `started` returns an error, the scheduler lacks its decode threads: only
  // destroy it.
  Scheduler(SchedulerOptions options, BufferPool* pool,
            std::shared_ptr<WakeSignal> wake, const Clock& clock);
  ~Scheduler();  // stops, however long it takes

  // kResourceExhausted: a decode thread cannot be created.
  const absl::Status& started() const { return started_; }

  // kResourceExhausted: max_streams are open, a row is larger than the pool, or
  // no thread that reads ahead can be created.
  absl::StatusOr<StreamId> OpenStream(std::shared_ptr<const RowWork> work,
                                      std::shared_ptr<GroupSink> sink);
  // kResourceExhausted: too many rows wait. kInvalidArgument: no rows, sizes
  // differ, a request_id that is in use, slots that the memory does not have, a
  // device's memory for work without stages. kNotFound: the stream is closed.
  absl::Status Ask(StreamId stream, RowRequest request);
  // Withdraws a request: forgets rows that have not begun, and groups that are
  // not complete. Ignores an unknown request.
  void Cancel(StreamId stream, uint64_t request_id);
  // Forgets the stream. Groups in work are dropped. OnGroup may still run when
  // this returns, but not for groups that begin later. Ignores an unknown
  // stream.
  void CloseStream(StreamId stream);

  // Computes or prepares one row on the calling thread, or a few small rows of
  // one group. Returns false if there is nothing to do now.
  bool RunOne(ThreadState* state);
  // The work that had not ended at the deadline.
  struct Left {
    int decode_threads = 0;  // that compute a row
    int read_threads = 0;    // that wait for storage
    size_t stages = 0;       // on a device
    bool none() const {
      return decode_threads == 0 && read_threads == 0 && stages == 0;
    }
  };
  // Stops the threads after the rows in work and the records that are being
  // read, and waits for them and for the stages that are being finished, until
  // `deadline`. Idempotent. Work that is left continues, and needs this object
  // and everything that it was made with: then end the process without
  // destroying them (std::_Exit), or call Stop again.
  Left Stop(MonotonicTime deadline = MonotonicTime::max());

  // Rows of a job, and the time that they took, since the job last had no
  // streams.
  struct JobRows {
    std::string job;
    uint64_t rows_total = 0;         // that were computed or shared
    uint64_t rows_shared_total = 0;  // included in rows_total
    // Time that the job's next row waited, by what it waited for.
    uint64_t input_ns = 0;   // its record
    uint64_t thread_ns = 0;  // a decode thread
    uint64_t output_ns = 0;  // room for output
    // Time that threads spent.
    uint64_t read_ns = 0, decode_ns = 0;  // by decode threads
    uint64_t fetch_ns = 0;                // by threads that read ahead
    // The job's part of the values in Stats.
    uint64_t sending_ns_total = 0, groups_unsent = 0, streams = 0;
  };
  struct Stats {
    uint64_t rows_total = 0;
    // Included in rows_total: written into shared memory.
    uint64_t rows_placed_total = 0;
    // Included in rows_total: computed for another stream.
    uint64_t rows_shared_total = 0;
    uint64_t shared_bytes = 0;  // of rows kept for other streams
    std::vector<JobRows> jobs;  // that have streams
    uint64_t row_errors_total = 0;
    uint64_t rows_queued = 0;  // requested, not begun
    uint64_t streams = 0;
    uint64_t rows_ahead = 0;   // being read, or read and not begun
    uint64_t bytes_ahead = 0;  // of rows_ahead
    uint64_t busy_ns_total = 0;
    Histogram::Snapshot latency;  // per row, from request to last byte sent

    // Time during which threads had no work, by cause.
    struct Waits {
      uint64_t idle_ns = 0;    // no rows were requested
      uint64_t input_ns = 0;   // all requested rows were being read
      uint64_t output_ns = 0;  // there was no room for rows that could begin
    };
    StageTimes decode_stages, read_stages;  // by kind of thread
    Waits decode_waits, read_waits;
    int readers = 0;        // threads that read ahead and have started
    size_t read_depth = 0;  // rows that were requested and not read
    // Groups that were finished, and those whose last byte has been sent.
    uint64_t groups_unsent = 0, groups_sent_total = 0;
    uint64_t sending_ns_total = 0;  // sum over the groups that were sent
    uint64_t groups_unsent_limit = 0;
  };
  Stats stats() const;
  // Waits until no row waits or is in work, and no stage is being finished.
  // Returns false if that was not so by `deadline`.
  bool WaitIdle(MonotonicTime deadline);

 private:
  struct State;
  // Reads rows on the calling thread. Returns false if there is nothing to do
  // now; the thread then counts as idle until it calls again with `was_idle`.
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
