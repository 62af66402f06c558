// SPDX-License-Identifier: Apache-2.0
//
// Decisions: all that a Fetcher wants of its owner, who does it without the
// lock. The Fetcher's parts add to one, and Fetcher::Decide returns it.
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

// A message to a stream: ask for rows; or, without rows, withdraw `request_id`;
// or, if that is 0, only open the stream.
struct StreamMessage {
  std::shared_ptr<WorkerStream> stream;
  uint64_t request_id = 0;
  uint64_t epoch = 0;
  uint64_t step = 0;
  std::vector<uint32_t> rows;
  std::vector<uint64_t> samples;
  std::vector<uint64_t> absent;  // samples that are agreed not to be there
  uint64_t memory_id = 0;        // 0: the rows come as bytes
  std::vector<uint32_t> places;  // in that memory, parallel to rows
  std::shared_ptr<const Supplied> supplied;  // the samples; null: stored ones
  uint64_t supplied_bytes = 0;
};

// Memory that is to be shared with a stream's worker.
struct Offer {
  std::shared_ptr<WorkerStream> stream;
  std::shared_ptr<BatchMemory> memory;
};

struct Decisions {
  std::vector<StreamMessage> messages;  // to be sent, in order
  std::vector<Offer> offers;
  // Steps that need other memory: Leases::MoveToNewBuffer follows.
  std::vector<std::shared_ptr<Step>> to_move;
  // Steps in device memory that have become complete, to be made whole there;
  // each once, Uploaded follows.
  std::vector<std::shared_ptr<Step>> uploads;
  // Streams that are given up because they are idle. The caller ends them, and
  // then calls Closed.
  std::vector<std::shared_ptr<WorkerStream>> idle;
  // Memory that nothing may write to any more. It is to be dropped without the
  // lock: it may be unmapped.
  std::vector<std::shared_ptr<StepMemory>> released;
  // Addresses of workers that are not reached, to be looked at: Looked follows.
  std::vector<std::string> looks;
  // What people should know; empty: nothing. Each is told once.
  std::string warning;
  // Where the rows are that the consumer waits for, once a step that is waited
  // for as long as `late_note`; empty: nothing.
  std::string note;
  // When Decide must be called again if nothing happens.
  MonotonicTime due = MonotonicTime::max();
};

}  // namespace leat::client
