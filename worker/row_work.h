// SPDX-License-Identifier: Apache-2.0
//
// What the scheduler runs and whom it hands the results to; neither knows gRPC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace leat::worker {

// What a decode thread keeps between rows: scratch memory.
class ThreadState {
 public:
  virtual ~ThreadState() = default;
};

// A job's rows: a pure function of (epoch, sample). Thread-safe.
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
      uint64_t epoch, uint64_t sample, ThreadState* state,
      std::span<const std::span<std::byte>> outputs) const = 0;
};

// Rows of one step, asked for together. `rows` and `samples` are parallel.
struct RowAsk {
  uint64_t ask_id = 0;
  uint64_t epoch = 0;
  uint64_t step = 0;
  std::vector<uint32_t> rows;
  std::vector<uint64_t> samples;
};

// Rows that were computed together. Payload: field after field, each
// rows.size() rows dense.
struct FinishedGroup {
  uint64_t ask_id = 0;
  uint64_t group_id = 0;  // unique on the stream
  std::vector<uint32_t> rows;
  // Not OK: the group failed (by the failed row that comes first); no payload.
  absl::Status status;
  std::span<const std::byte> payload;
  // Holds the payload; the buffer goes back to its pool when dropped. Dropping
  // takes no lock: fit for gRPC's release hooks.
  std::shared_ptr<const void> owner;
};

// A stream's receiving end.
class GroupSink {
 public:
  virtual ~GroupSink() = default;
  // On a decode thread, without locks; of several groups at once. Must not
  // block.
  virtual void OnGroup(FinishedGroup group) = 0;
};

}  // namespace leat::worker
