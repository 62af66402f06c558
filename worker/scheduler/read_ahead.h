// SPDX-License-Identifier: Apache-2.0
//
// ReadAhead: whose rows are read next, by the threads that wait for storage in
// front of the decode threads, and how much of them.
//
// The jobs share so many threads, and so many bytes that were read and not
// taken yet or are being read (by the mean of the job's records). A job gets no
// more of either than it leaves to the others: alone, half; the next one, half
// of the rest. So a job whose storage hangs never holds everything. One that
// has no bytes may read a record of any size, so that everyone gets on.
//
// Of the jobs that may read, the one with the fewest threads is next; in it the
// stream with the fewest rows ahead, of these the one with the earliest step,
// of these the one that was opened first.
//
// A group's records may be dropped while a thread reads some of them. What was
// reserved for these comes back when that thread is done. Their job may have
// ended by then: until it comes back it is lacking, but a new job of that name
// does not owe it.
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

  static constexpr size_t kMaxRowsAtOnce = 64;  // of one thread

  // A stream, whose rows are read ahead while it is open.
  class Stream {
   public:
    size_t rows_ready() const { return rows_ready_; }  // read and not taken
    size_t rows_ahead() const { return rows_ahead_; }  // also being read

   private:
    friend class ReadAhead;
    // The fewest rows ahead first; then the earliest step; then the number.
    using Place = std::tuple<size_t, Step, uint64_t>;

    std::shared_ptr<Job> job_;      // null: it is not open
    uint64_t number_ = 0;           // decides between equals
    std::optional<Place> to_read_;  // none: it has no rows to read
    size_t rows_ready_ = 0;
    size_t rows_ahead_ = 0;
  };

  // The records of a group of an open stream's rows, in the group's order.
  // Shared by the group and the threads that read them, so that a group that
  // is dropped waits for none of them.
  class GroupReads {
   public:
    GroupReads(Stream* stream, size_t rows)
        : job_(stream->job_), stream_(stream), records_(rows) {}

    size_t ready() const { return ready_.size(); }  // read and not taken
    bool all_ready() const { return ready_.size() == records_.size(); }
    size_t begun() const { return begun_; }  // rows before it have a thread
    // Returns whether some rows have no thread yet.
    bool unread() const { return begun_ < records_.size(); }
    // Returns whether nobody wants the records any more. Any thread may ask,
    // without the lock too, so that a read in progress ends early.
    bool dropped() const { return dropped_; }

   private:
    friend class ReadAhead;
    const std::shared_ptr<Job> job_;   // also of the job's open streams
    Stream* const stream_;             // valid until it is dropped
    std::vector<RowRecords> records_;  // by row; of those that are ready
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
    size_t index = 0;  // of the row, in its group
    RowRecords records;
  };

  // Returns whether the owner lets rows of the stream be read.
  using LookAt = absl::FunctionRef<bool(Stream&)>;

  ReadAhead(int threads, uint64_t bytes) : threads_(threads), bytes_(bytes) {}

  // The stream is one of the job's from here on. A job begins with its first
  // stream.
  void Open(Stream* stream, const std::string& job);
  // A job ends with its last stream. REQUIRES: nothing is done with its groups
  // any more, but to end reads of those that were dropped.
  void Close(Stream* stream);

  // The open stream has rows that no thread was given, the first of them in
  // `first`. To be called again when that, or its rows ahead, have changed.
  void Put(Stream* stream, const Step& first);
  // The stream has no such rows, so it is not chosen until Put says otherwise.
  void Remove(Stream* stream);

  // The stream whose rows are read next: the last one to which `look` said yes.
  // null: no job may read, or `look` says no to all. `look` must not change
  // anything here. It is asked about each stream before the chosen one.
  Stream* Choose(LookAt look) const;

  // Gives a thread the group's next rows: as many as it reads in a short time,
  // or as one request brings (`together`), but no more bytes than are left less
  // those that the job has; at least one row. So one read of many rows may take
  // more than it leaves, and the job gets no other one then.
  // REQUIRES: unread().
  Read Begin(const std::shared_ptr<GroupReads>& group, size_t together);
  // The thread has read them in this time. Takes the records, if they are
  // wanted; there may be fewer of them than rows if they are not.
  void End(const Read& read, std::vector<RowRecords>& records, Duration spent);

  // The first row that is ready, which needs no room here from now on.
  // REQUIRES: ready() > 0.
  Taken Take(GroupReads& group);
  // Nobody wants the group's records. Returns those that are there, to be freed
  // without the lock.
  std::vector<RowRecords> Drop(GroupReads& group);

  // Returns whether the open stream's job may have more bytes on their way.
  bool HasBytesLeft(const Stream& stream) const;
  // Returns whether some job may have no more bytes on their way.
  bool IsShortOfBytes() const;

  // What the job of an open stream has.
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
  // What a job has under way, which outlives it until it has been read.
  struct Job {
    std::string name;
    size_t streams = 0;  // open
    std::map<Stream::Place, Stream*> to_read;
    int threads = 0;
    size_t rows_ready = 0;
    uint64_t bytes = 0;  // read and not taken; being read, by the mean
    // Moving averages of one row.
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
  int threads_reading_ = 0;  // for jobs that have ended too
  uint64_t bytes_ahead_ = 0;
};

}  // namespace leat::worker
