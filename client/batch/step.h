// SPDX-License-Identifier: Apache-2.0
//
// Step: one global batch in flight, or this consumer's rows of it: the buffer,
// and for each row which workers were asked for it and whether it has arrived.
//
// A row is written by one group of a worker's answer at a time. The group
// claims its rows at its first piece; another group may take over a claim (the
// first one's worker may have stopped in the middle), but not while a piece is
// being copied. A row that is done, and with it a delivered buffer, is
// therefore never written again.
//
// A worker on this host may be asked to write rows directly into the step's
// memory: such a row is leased, and only that worker writes it there. If it has
// to be requested from another worker nevertheless, the step moves to other
// memory, and its old memory is quarantined: neither delivered nor reused
// before its leases have ended.
//
// Thread-compatible: the Fetcher's owner locks; only Scatter and CopyRows run
// without the lock, on rows in state kCopying or kMoving.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/batch/absences.h"
#include "client/batch/batch_pool.h"
#include "client/batch/feed.h"
#include "core/clock.h"
#include "core/observe/tracing.h"

namespace leat::client {

// RowMap: the rows of the global batch for one consumer, and their positions.
class RowMap {
 public:
  static constexpr uint32_t kAbsent = ~uint32_t{0};
  // `rows`: in this order, each < batch, no duplicates; empty: all. kNotFound:
  // beyond the batch. kInvalidArgument: a duplicate.
  static absl::StatusOr<std::shared_ptr<const RowMap>> Create(
      std::vector<uint32_t> rows, uint32_t batch);

  std::span<const uint32_t> rows() const { return rows_; }
  // Returns kAbsent if the row is not wanted, or not a row.
  uint32_t PositionOf(uint32_t row) const {
    return row < positions_.size() ? positions_[row] : kAbsent;
  }

 private:
  std::vector<uint32_t> rows_;
  std::vector<uint32_t> positions_;  // by row
};

enum class RowState : uint8_t {
  kWanted,   // no group has begun to deliver it
  kClaimed,  // by a group, between two pieces
  kCopying,  // a piece is being copied
  kMoving,   // it has arrived, and is copied from the previous memory
  kDone,
};

// StepMemory: a buffer of a step, and the writes to it that workers may still
// do.
struct StepMemory {
  explicit StepMemory(BatchPool::Buffer its_buffer)
      : buffer(std::move(its_buffer)) {}
  uint64_t id() const { return buffer.memory()->id(); }

  BatchPool::Buffer buffer;
  uint32_t leases = 0;       // requests whose rows may still be written here
  bool quarantined = false;  // no longer the step's memory
};

// One row of a step.
struct Row {
  static constexpr int kMaxRequests = 3;  // concurrent requests to workers
  static constexpr uint16_t kNobody = 0xffff;

  uint64_t group = 0;        // the group that claims it; 0: none
  MonotonicTime asked_at{};  // last time
  uint16_t asked[kMaxRequests] = {kNobody, kNobody,
                                  kNobody};  // not answered yet
  uint16_t failed[kMaxRequests] = {kNobody, kNobody, kNobody};  // in this round
  uint16_t errors = 0;  // that count (FetcherConfig::max_row_errors)
  RowState state = RowState::kWanted;
  bool pending = true;     // in the list of rows to request
  bool leased = false;     // a worker may write it into the step's memory
  bool on_device = false;  // it arrived in the device's part of the memory
  bool disputed = false;   // the step's `absences` have reports about it
  // Why it is pending although a request is open: it is late, and costs a part
  // of the hedging budget; or its worker has stopped.
  enum class Again : uint8_t { kNo, kLate, kStopped };
  Again again = Again::kNo;

  // Returns whether it has arrived.
  bool settled() const {
    return state == RowState::kDone || state == RowState::kMoving;
  }

  bool AskedOf(uint16_t worker) const;
  bool FailedAt(uint16_t worker) const;
  int num_asked() const;
  // Returns false if kMaxRequests are open already.
  bool AddAsked(uint16_t worker);
  void RemoveAsked(uint16_t worker);
  void AddFailed(uint16_t worker);
  void ForgetFailed();
};

struct Step {
  // `samples` are parallel to map->rows(); those that are kNoSample are left
  // out, and the others move up.
  Step(uint64_t epoch, uint64_t step, std::shared_ptr<const RowMap> map,
       std::span<const uint64_t> samples,
       std::shared_ptr<const BatchLayout> layout, BatchPool::Buffer buffer);

  // Returns the index in `rows` of a row of the global batch, or
  // RowMap::kAbsent.
  uint32_t IndexOf(uint32_t global_row) const;
  bool all_done() const { return done == rows.size(); }
  // Returns the bytes of the row's sample that a request carries to a worker.
  uint64_t SuppliedBytes(uint32_t index) const {
    return supplied ? Supplied::BytesOf(supplied->Of(samples[index])) : 0;
  }
  // Returns the row's samples that are agreed to be absent, ascending.
  std::span<const uint64_t> AbsentOf(uint32_t index) const {
    if (!rows[index].disputed) return {};
    return absences->Of(index);
  }
  // Returns whether every row is there, and no worker can write to it any more.
  bool complete() const { return all_done() && memory->leases == 0; }
  // Returns whether it can be delivered.
  bool ready() const { return complete() && upload == Upload::kDone; }

  // Fails the step: nothing is requested for it, and the consumer gets the
  // error.
  void Fail(const absl::Status& status);

  // Copies a part of a group's payload into place: `indices` are the group's
  // rows in order, `mine[i]` whether indices[i] is to be written. Returns the
  // bytes written.
  size_t Scatter(const StepMemory& to, std::span<const uint32_t> indices,
                 std::span<const uint8_t> mine, uint64_t offset,
                 std::span<const std::byte> bytes) const;
  // Copies the rows that are `mine`.
  void CopyRows(const StepMemory& from, const StepMemory& to,
                std::span<const uint32_t> indices,
                std::span<const uint8_t> mine) const;

  const uint64_t epoch;
  const uint64_t step;
  const std::shared_ptr<const RowMap> map;
  const std::shared_ptr<const BatchLayout> layout;
  std::vector<uint32_t> compact;             // position -> index; empty: equal
  std::vector<uint32_t> globals;             // index -> row of the global batch
  std::vector<uint64_t> samples;             // by index
  std::shared_ptr<const Supplied> supplied;  // null: workers read them
  std::vector<Row> rows;                     // by index
  std::vector<uint32_t> pending;             // indices of rows to request
  size_t done = 0;
  absl::Status error;   // final; OK: none
  bool spoilt = false;  // a row will never come: none is requested any more
  // Workers' reports of samples that they do not find; null: none.
  std::unique_ptr<Absences> absences;
  bool wants_memory = false;  // other memory was requested
  // With device memory, rows in the host's part are copied to the device when
  // the step is complete. With host memory it stays kDone.
  enum class Upload : uint8_t { kDue, kUnderWay, kDone };
  Upload upload = Upload::kDone;
  std::shared_ptr<StepMemory> memory;       // not null; shared with its writers
  std::shared_ptr<const TracedStep> trace;  // null: it is not traced
  MonotonicTime planned_at{};               // if it is traced
};

}  // namespace leat::client
