// SPDX-License-Identifier: Apache-2.0
//
// What the scheduler runs and whom it hands the results to; neither knows gRPC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/hash.h"
#include "worker/sample/stored_sample.h"

namespace leat {
class TracedStep;
}

namespace leat::worker {

// What a decode thread keeps between rows: scratch memory.
class ThreadState {
 public:
  virtual ~ThreadState() = default;
};

// A sample's record, or why it could not be read.
struct ReadRecord {
  uint64_t sample = 0;
  absl::StatusOr<StoredSample> stored;
};
// What a row is made of.
using RowRecords = absl::InlinedVector<ReadRecord, 1>;

// A row of a step, and the sample it is made of.
struct RowOf {
  uint64_t epoch = 0;
  uint64_t step = 0;
  uint32_t row = 0;
  uint64_t sample = 0;
  // The sample, if its consumer has supplied it; null: it is in storage. Valid
  // while the row is computed, and as long as its group's stage.
  const StoredSample* supplied = nullptr;
  // What RowWork::ReadAhead gave, while the row is computed or prepared; null:
  // nothing was read ahead.
  const RowRecords* records = nullptr;
  // Samples that other workers do not find either (RowRequest). Valid as
  // `supplied`.
  std::span<const uint64_t> absent;
  // Compute sets it to true if the sample is bad, whatever the row holds then;
  // null: nobody asks.
  bool* bad = nullptr;
};

// What a row's bytes depend on, beside its work's sharing_key(). Fields that
// they do not depend on are 0.
struct RowKey {
  uint64_t epoch = 0;  // of the random draws
  uint64_t step = 0;
  uint64_t sample = 0;
  uint32_t row = 0;
  bool padding = false;  // the row is marked as one without a sample

  friend bool operator==(const RowKey&, const RowKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const RowKey& key) {
    return H::combine(std::move(h), key.epoch, key.step, key.sample, key.row,
                      key.padding);
  }
};

// Memory of a consumer on this host that rows are written straight into. Lives
// as long as anything refers to it.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  // Where the first place is: an address of this process, or of the device.
  virtual std::byte* base() const = 0;
  // Index of the GPU (as in --devices) whose memory it is; -1: the host's.
  virtual int device() const = 0;
  virtual uint32_t rows() const = 0;  // places
  // The offsets of place 0, by field.
  virtual std::span<const uint64_t> field_offsets() const = 0;
};

// Where one row goes: `place` of the memory at `base`. Borrows.
struct RowTarget {
  std::byte* base = nullptr;
  const uint64_t* offsets = nullptr;  // of place 0, by field
  size_t place = 0;
};

// Where the rows of a group go. Borrows.
struct GroupOutputs {
  size_t rows = 0;
  std::byte* base = nullptr;
  int device = -1;                      // whose memory it is; -1: the host's
  std::span<const uint64_t> offsets;    // of the first place, by field
  std::span<const size_t> field_bytes;  // of a row
  std::span<const uint32_t> places;     // by row; empty: 0, 1, 2 …
  // A target for each row, where rows of several requests go to memories of
  // their own; empty: all go to `base`.
  std::span<const RowTarget> targets;

  std::byte* At(size_t field, size_t row) const {
    if (!targets.empty()) {
      const RowTarget& to = targets[row];
      return to.base + to.offsets[field] + to.place * field_bytes[field];
    }
    const size_t place = places.empty() ? row : places[row];
    return base + offsets[field] + place * field_bytes[field];
  }
};

// Rows on their way through a device: prepared on the decode threads, then
// finished together. They may be of several requests. A stage that nobody wants
// any more is destroyed before Finish; none is destroyed between Finish and
// `done`.
class GroupStage {
 public:
  // A status for each row: OK, or its error; empty: all are OK.
  using Done = std::function<void(std::vector<absl::Status> rows)>;

  virtual ~GroupStage() = default;
  // What a decode thread does for the row at `index`. A row once, in any order,
  // of several threads at the same time.
  virtual absl::Status Prepare(size_t index, const RowOf& row,
                               ThreadState* state) = 0;
  // Nobody wants the row: Finish writes nothing of it, and its memory may be
  // gone. Before Finish; whether it was prepared or not.
  virtual void Forget(size_t index) = 0;
  // After every row has been prepared without an error or forgotten, on a
  // decode thread. Must not block; calls `done` once, on any thread, also from
  // within, when nothing of the rows can be written any more. `done` delivers
  // them and, once Finish has returned, destroys the stage and whatever
  // function it kept: move `done` out of the stage, call it last and without
  // locks.
  virtual void Finish(Done done) = 0;
};

// A job's rows: a pure function of RowOf. Thread-safe.
class RowWork {
 public:
  virtual ~RowWork() = default;
  // Streams of one key share their job's fair part of the threads.
  virtual const std::string& job_key() const = 0;
  // Bytes of a row of each field, in the schema's order.
  virtual std::span<const size_t> field_bytes() const = 0;
  virtual uint64_t steps_per_epoch() const = 0;
  // Computes one row into outputs[field]. Outputs are aligned to nothing.
  virtual absl::Status Compute(
      const RowOf& row, ThreadState* state,
      std::span<const std::span<std::byte>> outputs) const = 0;

  // For rows that streams of several works may have from each other: works with
  // equal keys have equal rows wherever KeyOf says the same. nullptr: none of
  // the work's rows are shared. Constant.
  virtual const Digest* sharing_key() const { return nullptr; }
  // REQUIRES: sharing_key() is not null, and the sample is not a supplied one.
  virtual RowKey KeyOf(const RowOf& row) const { return {}; }

  // Whether what rows are made of is read by ReadAhead before they are computed
  // or prepared: where reads may wait for a network. Constant.
  virtual bool reads_ahead() const { return false; }
  // Reads what a row is made of, on a thread that may wait for storage. What is
  // missing from its answer is read when the row is computed.
  virtual RowRecords ReadAhead(const RowOf& row) const { return {}; }
  // The same of several rows, those of neighbouring records by one request.
  virtual std::vector<RowRecords> ReadTogether(
      std::span<const RowOf> rows) const {
    std::vector<RowRecords> records;
    for (const RowOf& row : rows) records.push_back(ReadAhead(row));
    return records;
  }
  // How many of the first of these samples one request brings: 1 and more.
  // Cheap; called with the scheduler's lock held too.
  virtual size_t CountTogether(std::span<const uint64_t> samples) const {
    return 1;
  }

  // Whether rows are computed in stages, where they go to a GPU's memory
  // (`on_device`) or the host's. False: by Compute, one by one; which cannot
  // write a GPU's memory. Constant.
  virtual bool staged(bool on_device) const { return false; }
  // For staged work: the most rows of a group, 1 or more. Constant.
  virtual size_t most_rows() const { return SIZE_MAX; }
  // For staged work: whether BeginGroup would find room now for a group that
  // goes to `device` (-1: the host). The scheduler's WakeSignal is notified
  // when that may have changed. Cheap; called with the scheduler's lock held.
  virtual bool CanBegin(int device) const { return true; }
  // For staged work: returns a stage for a group; called without locks, by one
  // thread at a time. `outputs` stay valid until the stage is destroyed, and so
  // does this work; but for the memory of rows that nobody wants any more,
  // which are not prepared from then on, and forgotten before Finish. nullptr:
  // no room after all; CanBegin is false then, until the signal.
  virtual std::unique_ptr<GroupStage> BeginGroup(
      const GroupOutputs& outputs) const {
    return nullptr;
  }
};

inline constexpr size_t kMaxAbsent = 256;  // samples of a request

// Rows of one step, asked for together. `rows` and `samples` are parallel.
struct RowRequest {
  uint64_t request_id = 0;
  uint64_t epoch = 0;
  uint64_t step = 0;
  std::vector<uint32_t> rows;
  std::vector<uint64_t> samples;
  // Where the rows are to be written; null: into a buffer of the worker's.
  std::shared_ptr<const SharedMemory> memory;
  std::vector<uint32_t> places;  // parallel to rows, if there is memory
  // Dropped when nothing of the request can be written any more.
  std::shared_ptr<const void> lease;
  // The samples, if the consumer supplies them: parallel to rows.
  std::vector<StoredSample> supplied;
  // Samples that two workers did not find, of any of these rows (their own,
  // substitutes or partners): where this one does not find them either, they
  // are bad.
  std::vector<uint64_t> absent;
  // Where its spans go; null: its step is not traced.
  std::shared_ptr<const TracedStep> trace;
};

// Rows that were computed together. Payload: field after field, each
// rows.size() rows dense.
struct FinishedGroup {
  uint64_t request_id = 0;
  uint64_t group_id = 0;  // unique on the stream
  std::vector<uint32_t> rows;
  // Not OK: the group failed (by the failed row that comes first); no payload.
  absl::Status status;
  bool placed = false;           // asked with memory: no payload
  std::vector<uint32_t> places;  // of a placed group: parallel to rows
  const void* lease = nullptr;   // the request's; during OnGroup
  std::span<const std::byte> payload;
  // Holds the payload, and counts as one of the stream's unsent groups; the
  // buffer goes back to its pool when dropped. Dropping takes no lock, but for
  // that of a SpanBuffer where the step is traced: fit for gRPC's release
  // hooks.
  std::shared_ptr<const void> owner;
};

// A stream's receiving end.
class GroupSink {
 public:
  virtual ~GroupSink() = default;
  // On a decode thread or one that calls a stage's `done`, without locks; of
  // several groups at once. Must not block.
  virtual void OnGroup(FinishedGroup group) = 0;
};

}  // namespace leat::worker
