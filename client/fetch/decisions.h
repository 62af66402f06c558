// SPDX-License-Identifier: Apache-2.0
//
// Decisions: the actions that a Fetcher requests from its owner, which executes
// them without the lock. The Fetcher's parts add to one, and Fetcher::Decide
// returns it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/batch/batch_memory.h"
#include "client/batch/step.h"
#include "client/fetch/worker_stream.h"
#include "core/clock.h"

namespace leat::client {

// A message to a stream: requests rows; or, without rows, withdraws
// `request_id`; or, if that is 0, only opens the stream.
struct StreamMessage {
  std::shared_ptr<WorkerStream> stream;
  uint64_t request_id = 0;
  uint64_t epoch = 0;
  uint64_t step = 0;
  std::vector<uint32_t> rows;
  std::vector<uint64_t> samples;
  std::vector<uint64_t> absent;  // samples that are agreed to be absent
  uint64_t memory_id = 0;        // 0: the rows come as bytes
  std::vector<uint32_t> slots;   // in that memory, parallel to rows
  std::shared_ptr<const Supplied> supplied;  // the samples; null: stored ones
  uint64_t supplied_bytes = 0;
};

// Memory to be shared with a stream's worker.
struct Offer {
  std::shared_ptr<WorkerStream> stream;
  std::shared_ptr<BatchMemory> memory;
};

struct Decisions {
  std::vector<StreamMessage> messages;  // to be sent, in order
  std::vector<Offer> offers;
  // Steps that need other memory: Leases::MoveToNewBuffer follows.
  std::vector<std::shared_ptr<Step>> to_move;
  // Complete steps in device memory whose remaining rows are to be uploaded;
  // each appears once, and Uploaded follows.
  std::vector<std::shared_ptr<Step>> uploads;
  // Streams to be closed because they are idle. The caller ends them, and then
  // calls Closed.
  std::vector<std::shared_ptr<WorkerStream>> idle;
  // Memory that can no longer be written to. It is to be dropped without the
  // lock, because that may unmap it.
  std::vector<std::shared_ptr<StepMemory>> released;
  // Addresses of unreached workers to be probed: Looked follows.
  std::vector<std::string> looks;
  // A warning for people, reported once; empty: none.
  std::string warning;
  // A message that locates the missing rows, at most once per step, after the
  // consumer has waited `late_note`; empty: none.
  std::string note;
  // When Decide must be called again if nothing happens.
  MonotonicTime due = MonotonicTime::max();
};

}  // namespace leat::client
