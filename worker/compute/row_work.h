// SPDX-License-Identifier: Apache-2.0
//
// Defines the work that the scheduler runs and the sinks that it hands the
// results to; neither knows gRPC.
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

// The state that a decode thread keeps between rows: scratch memory.
class ThreadState {
 public:
  virtual ~ThreadState() = default;
};

// A sample's record, or the error of reading it.
struct ReadRecord {
  uint64_t sample = 0;
  absl::StatusOr<StoredSample> stored;
};
// The records that a row is computed from.
using RowRecords = absl::InlinedVector<ReadRecord, 1>;

// A row of a step, and the sample it is computed from.
struct RowOf {
  uint64_t epoch = 0;
  uint64_t step = 0;
  uint32_t row = 0;
  uint64_t sample = 0;
  // The sample, if its consumer has supplied it; nullptr: it is in storage.
  // Valid while the row is computed, and as long as its group's stage.
  const StoredSample* supplied = nullptr;
  // The result of RowWork::ReadAhead, valid while the row is computed or
  // prepared; nullptr: nothing was read ahead.
  const RowRecords* records = nullptr;
  // Samples that other workers do not find either (RowRequest). Valid as long
  // as `supplied`.
  std::span<const uint64_t> absent;
  // Compute sets it to true if the sample is bad, whatever the row then holds;
  // nullptr: the caller does not need it.
  bool* bad = nullptr;
};

// The values that a row's bytes depend on, apart from its work's sharing_key().
// Fields that they do not depend on are 0.
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
  // Returns the address of the first slot, in this process or on the device.
  virtual std::byte* base() const = 0;
  // Returns the index of the GPU (as in --devices) that has the memory; -1: the
  // host.
  virtual int device() const = 0;
  virtual uint32_t rows() const = 0;  // slots
  // Returns the offset of each field in slot 0.
  virtual std::span<const uint64_t> field_offsets() const = 0;
};

// Where one row is written: `slot` of the memory at `base`. Does not own.
struct RowTarget {
  std::byte* base = nullptr;
  const uint64_t* offsets = nullptr;  // of slot 0, by field
  size_t slot = 0;
};

// Where the rows of a group are written. Does not own.
struct GroupOutputs {
  size_t rows = 0;
  std::byte* base = nullptr;
  int device = -1;                      // of the memory's GPU; -1: host
  std::span<const uint64_t> offsets;    // of slot 0, by field
  std::span<const size_t> field_bytes;  // per row
  std::span<const uint32_t> slots;      // by row; empty: 0, 1, 2 …
  // One target per row, if rows of several requests go to different memories;
  // empty: all go to `base`.
  std::span<const RowTarget> targets;

  std::byte* At(size_t field, size_t row) const {
    if (!targets.empty()) {
      const RowTarget& to = targets[row];
      return to.base + to.offsets[field] + to.slot * field_bytes[field];
    }
    const size_t slot = slots.empty() ? row : slots[row];
    return base + offsets[field] + slot * field_bytes[field];
  }
};

// Rows on their way through a device: prepared on the decode threads, then
// finished together. They may belong to several requests. A stage whose rows
// have all been withdrawn is destroyed before Finish; none is destroyed between
// Finish and `done`.
class GroupStage {
 public:
  // Gets one status per row, OK or its error; empty: all are OK.
  using Done = std::function<void(std::vector<absl::Status> rows)>;

  virtual ~GroupStage() = default;
  // Does a decode thread's work for the row at `index`. Called once per row, in
  // any order, on several threads at the same time.
  virtual absl::Status Prepare(size_t index, const RowOf& row,
                               ThreadState* state) = 0;
  // Withdraws a row: Finish does not write it, and its memory may be gone.
  // Called before Finish, whether the row was prepared or not.
  virtual void Forget(size_t index) = 0;
  // Called on a decode thread after every row has been prepared without an
  // error or forgotten. Must not block; calls `done` once, on any thread,
  // perhaps from within, when no row can be written any more. `done` delivers
  // the rows and, once Finish has returned, destroys the stage and any function
  // it kept: move `done` out of the stage, and call it last and without locks.
  virtual void Finish(Done done) = 0;
};

// Which rows are computed in groups, and how large these are. Thread-safe.
class GroupLimits {
 public:
  virtual ~GroupLimits() = default;
  // True if rows that are written to a GPU's memory (`on_device`), or to the
  // host's, are computed in groups. False: one by one, which cannot write a
  // GPU's memory. Constant.
  virtual bool staged(bool on_device) const { return false; }
  // Returns the most rows of a group, 1 or more. Constant.
  virtual size_t most_rows() const { return SIZE_MAX; }
  // True if BeginGroup would now find room for a group that goes to `device`
  // (-1: the host). The scheduler's WakeSignal is notified when that may have
  // changed. Cheap; called with the scheduler's lock held.
  virtual bool CanBegin(int device) const { return true; }
};

// A job's rows: a pure function of RowOf. Thread-safe.
class RowWork {
 public:
  virtual ~RowWork() = default;
  // Streams with one key share their job's fair part of the threads.
  virtual const std::string& job_key() const = 0;
  // Returns the bytes per row of each field, in the schema's order.
  virtual std::span<const size_t> field_bytes() const = 0;
  virtual uint64_t steps_per_epoch() const = 0;
  // Computes one row into outputs[field]. Outputs have no alignment.
  virtual absl::Status Compute(
      const RowOf& row, ThreadState* state,
      std::span<const std::span<std::byte>> outputs) const = 0;

  // Lets streams of several works share rows: works with equal keys have equal
  // rows wherever KeyOf returns the same. nullptr: rows of this work are not
  // shared. Constant.
  virtual const Digest* sharing_key() const { return nullptr; }
  // REQUIRES: sharing_key() is not nullptr, and the sample is not a
  // client-supplied one.
  virtual RowKey KeyOf(const RowOf& row) const { return {}; }

  // True if ReadAhead reads a row's records before it is computed or prepared,
  // because reads may wait for a network. Constant.
  virtual bool reads_ahead() const { return false; }
  // Reads a row's records, on a thread that may wait for storage. Records
  // missing from its answer are read when the row is computed.
  virtual RowRecords ReadAhead(const RowOf& row) const { return {}; }
  // Reads the records of several rows, neighbouring records by one request.
  virtual std::vector<RowRecords> ReadTogether(
      std::span<const RowOf> rows) const {
    std::vector<RowRecords> records;
    for (const RowOf& row : rows) records.push_back(ReadAhead(row));
    return records;
  }
  // Returns how many of the first of these samples one request reads: 1 or
  // more. Cheap; also called with the scheduler's lock held.
  virtual size_t CountTogether(std::span<const uint64_t> samples) const {
    return 1;
  }

  // Whether rows are computed in groups. Constant.
  virtual const GroupLimits& groups() const {
    static const GroupLimits kNone;
    return kNone;
  }
  // If rows are computed in groups: returns a stage for a group; called without
  // locks, by one thread at a time. `outputs` and this work stay valid until the stage is
  // destroyed, except the memory of withdrawn rows, which are not prepared from
  // then on, and are forgotten before Finish. nullptr: there is no room after
  // all; CanBegin is false then, until the signal.
  virtual std::unique_ptr<GroupStage> BeginGroup(
      const GroupOutputs& outputs) const {
    return nullptr;
  }
};

inline constexpr size_t kMaxAbsent = 256;  // samples of a request

// Rows of one step, requested together. `rows` and `samples` are parallel.
struct RowRequest {
  uint64_t request_id = 0;
  uint64_t epoch = 0;
  uint64_t step = 0;
  std::vector<uint32_t> rows;
  std::vector<uint64_t> samples;
  // Memory that the rows are written to; nullptr: a buffer of the worker's.
  std::shared_ptr<const SharedMemory> memory;
  uint64_t memory_id = 0;       // of `memory`, on the stream; 0: none
  std::vector<uint32_t> slots;  // parallel to rows, if there is memory
  // Dropped when no row of the request can be written any more.
  std::shared_ptr<const void> lease;
  // The samples, if the consumer supplies them; parallel to rows.
  std::vector<StoredSample> supplied;
  // Samples of any of these rows (their own, substitutes or partners) that two
  // workers did not find: if this one does not find them either, they are bad.
  std::vector<uint64_t> absent;
  // Receives the request's spans; nullptr: its step is not traced.
  std::shared_ptr<const TracedStep> trace;
};

// Rows that were computed together. Payload: field after field, each
// rows.size() rows dense.
struct FinishedGroup {
  uint64_t request_id = 0;
  uint64_t group_id = 0;  // unique on the stream
  std::vector<uint32_t> rows;
  // If not OK, the group failed and has no payload; it is the error of the
  // failed row that comes first.
  absl::Status status;
  bool placed = false;          // its request has memory: no payload
  std::vector<uint32_t> slots;  // if placed: parallel to rows
  const void* lease = nullptr;  // the request's; valid during OnGroup
  std::span<const std::byte> payload;
  // From the request's arrival until the group is complete; at least 1.
  uint32_t took_us = 1;
  // Holds the payload, and counts as one of the stream's unsent groups; the
  // buffer goes back to its pool when dropped. Dropping takes no lock, except
  // that of a SpanBuffer if the step is traced, so it is fit for gRPC's release
  // hooks.
  std::shared_ptr<const void> owner;
};

// A stream's receiving end.
class GroupSink {
 public:
  virtual ~GroupSink() = default;
  // Called without locks on a decode thread or on one that calls a stage's
  // `done`, for several groups at the same time. Must not block.
  virtual void OnGroup(FinishedGroup group) = 0;
};

}  // namespace leat::worker
