// SPDX-License-Identifier: Apache-2.0
//
// ReadAhead: decides whose rows are read next by the threads that wait for
// storage before the decode threads, and how many.
//
// The jobs share a number of threads, and a number of bytes that are being read
// (by the mean of the job's records) or were read and not taken yet. A job gets
// no more of either than it leaves to the others: alone, half; the next one,
// half of the rest. So a job whose storage hangs never holds everything. A job
// that has no bytes may read a record of any size, so that every job
// progresses.
//
// Among the jobs that may read, the one with the fewest threads is next; within
// it the stream with the fewest rows ahead, then the one with the earliest
// step, then the one that was opened first.
//
// A group's records may be dropped while a thread reads some of them. The bytes
// reserved for these come back when that thread is done. Their job may have
// ended by then: the bytes are missing until they come back, but are not
// charged to a new job with the same name.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/clock.h"
#include "worker/compute/row_work.h"

namespace leat::worker {

// Thread-compatible, together with its streams and groups: the owner locks.
class ReadAhead {
  struct Job;

 public:
  using Step = std::pair<uint64_t, uint64_t>;  // after its epoch

  static constexpr size_t kMaxRowsAtOnce = 64;  // per thread

  // A stream whose rows are read ahead while it is open.
  class Stream {
   public:
    size_t rows_ready() const { return rows_ready_; }  // read and not taken
    size_t rows_ahead() const { return rows_ahead_; }  // also those being read

   private:
    friend class ReadAhead;
    // Orders by fewest rows ahead, then earliest step, then number.
    using Place = std::tuple<size_t, Step, uint64_t>;

    std::shared_ptr<Job> job_;      // nullptr: it is not open
    uint64_t number_ = 0;           // decides between equals
    std::optional<Place> to_read_;  // nullopt: it has no rows to read
    size_t rows_ready_ = 0;
    size_t rows_ahead_ = 0;
  };

  // The records of a group of an open stream, in the group's order. Shared by
  // the group and the threads that read them, so a group that is dropped waits
  // for none of the threads.
  class GroupReads {
   public:
    GroupReads(Stream* stream, size_t rows)
        : job_(stream->job_), stream_(stream), records_(rows) {}

    size_t ready() const { return ready_.size(); }  // read and not taken
    bool all_ready() const { return ready_.size() == records_.size(); }
    size_t begun() const { return begun_; }  // rows before it have a thread
    // True if some rows have no thread yet.
    bool unread() const { return begun_ < records_.size(); }
    // True if the records are not wanted any more. Any thread may call it, even
    // without the lock, so that a read in progress ends early.
    bool dropped() const { return dropped_; }

   private:
    friend class ReadAhead;
    const std::shared_ptr<Job> job_;   // also the job of its open streams
    Stream* const stream_;             // valid until it is dropped
    std::vector<RowRecords> records_;  // by row; those that are ready
    std::set<size_t> ready_;
    size_t begun_ = 0;
    size_t taken_ = 0;
    std::atomic<bool> dropped_{false};
  };

  // Rows of a group that one thread reads, one after the other.
  struct Read {
    std::shared_ptr<GroupReads> group;
    size_t first = 0;
    size_t rows = 0;
    uint64_t reserved = 0;  // bytes, by the mean
  };

  struct Taken {
    size_t index = 0;  // the row's, in its group
    RowRecords records;
  };

  // Returns true if the owner lets rows of the stream be read.
  using LookAt = absl::FunctionRef<bool(Stream&)>;

  ReadAhead(int threads, uint64_t bytes) : threads_(threads), bytes_(bytes) {}

  // The stream belongs to the job from here on. A job begins with its first
  // stream.
  void Open(Stream* stream, const std::string& job);
  // A job ends with its last stream. REQUIRES: its groups are not used any
  // more, except to end reads of dropped ones.
  void Close(Stream* stream);

  // The open stream has rows that no thread was given; the first is in step
  // `first`. To be called again when that step, or its rows ahead, have
  // changed.
  void Put(Stream* stream, const Step& first);
  // The stream has no such rows, so it is not chosen until the next Put.
  void Remove(Stream* stream);

  // Returns the stream whose rows are read next: the last one to which `look`
  // returned true. nullptr if no job may read, or `look` returns false for all.
  // `look` must not change this object. It is called for each stream before the
  // chosen one.
  Stream* Choose(LookAt look) const;

  // Gives a thread the group's next rows: as many as it reads in a short time,
  // or as one request reads (`together`), but no more bytes than are free minus
  // those that the job has; at least one row. One read of many rows may thus
  // take more than it leaves, and then the job gets no other one.
  //  REQUIRES: unread().
  Read Begin(const std::shared_ptr<GroupReads>& group, size_t together);
  // The thread has read the rows in time `spent`. Takes the records if they are
  // wanted; if they are not, there may be fewer records than rows.
  void End(const Read& read, std::vector<RowRecords>& records, Duration spent);

  // Returns the first row that is ready, which needs no room here from now on.
  // REQUIRES: ready() > 0.
  Taken Take(GroupReads& group);
  // The group's records are not wanted any more. Returns those that are there,
  // to be freed without the lock.
  std::vector<RowRecords> Drop(GroupReads& group);

  // True if the open stream's job may read more bytes.
  bool HasBytesLeft(const Stream& stream) const;
  // True if some job may not read more bytes.
  bool IsShortOfBytes() const;

  // The load of an open stream's job.
  struct Load {
    size_t rows_ready = 0;  // read and not taken
    int threads = 0;        // that read for it
  };
  Load LoadOf(const Stream& stream) const {
    return {stream.job_->rows_ready, stream.job_->threads};
  }

  size_t streams() const { return streams_; }  // open
  int threads_reading() const { return threads_reading_; }
  uint64_t bytes_ahead() const { return bytes_ahead_; }

 private:
  // A job's reads under way. It outlives the job until they have ended.
  struct Job {
    std::string name;
    size_t streams = 0;  // open
    std::map<Stream::Place, Stream*> to_read;
    int threads = 0;
    size_t rows_ready = 0;
    uint64_t bytes = 0;  // read and not taken; being read, by the mean
    // Moving averages per row.
    double mean_bytes = 128 << 10;
    double mean_ns = 1e6;
  };

  double BytesLeft() const;
  bool HasBytesLeft(const Job& job) const;
  bool MayRead(const Job& job) const;
  void Release(Job& job, uint64_t bytes);

  const int threads_;
  const uint64_t bytes_;
  std::map<std::string, std::shared_ptr<Job>> jobs_;  // with open streams
  uint64_t next_number_ = 1;
  size_t streams_ = 0;
  int threads_reading_ = 0;  // also for jobs that have ended
  uint64_t bytes_ahead_ = 0;
};

}  // namespace leat::worker
