// SPDX-License-Identifier: Apache-2.0
//
// WorkerStream: one stream to a worker, from its first request to its end.
//
//   part              holds                         written by
//   StreamRequests    what is asked and answered    Deliveries
//   StreamSharing     what memory is shared           Leases
//   the rest          the stream itself             Fetcher, EndpointTable
//
// A request has a Lease if the worker writes its rows in place. When such a
// request is withdrawn, or its stream ends, while the lease lives, Deliveries
// hands the request to Leases, which keeps it in StreamSharing::ending.
//
// Thread-compatible: the Fetcher's owner locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/batch/step.h"
#include "core/clock.h"

namespace leat::client {

class Link;

// Rows that come together: an answer, whose bytes come in one frame or in more.
struct FrameGroup {
  uint64_t id = 0;  // unique in the Fetcher
  uint64_t request_id = 0;
  std::shared_ptr<Step> step;
  std::vector<uint32_t> indices;  // of the step's rows, in the group's order
  std::vector<uint8_t> mine;      // parallel: this piece may write the row
  uint64_t payload_bytes = 0;
  uint64_t received = 0;
  std::shared_ptr<StepMemory> memory;  // the rows are written here
};

// The bytes of one frame, which are to be copied:
// step->Scatter(*memory, indices, mine, offset, ...), of its group.
struct FramePiece {
  std::shared_ptr<FrameGroup> group;
  uint64_t number = 0;  // the worker's, of the group
  uint64_t offset = 0;
  bool last = false;
};

// Rows that have come into memory that is no longer their step's, and are to be
// copied: step->CopyRows(*from, *to, indices, mine).
struct MovePiece {
  uint64_t id = 0;          // the claim on its rows, as FrameGroup::id
  uint64_t request_id = 0;  // by which they came; 0: by several
  std::shared_ptr<Step> step;
  std::vector<uint32_t> indices;
  std::vector<uint8_t> mine;
  std::shared_ptr<StepMemory> from, to;
};

// What the worker of a request may do to the step's memory.
struct Lease {
  std::shared_ptr<StepMemory> memory;  // null: the rows come as bytes
  bool on_device = false;              // in the device's part of `memory`
  bool lives = false;                  // the worker may still write there
  std::vector<uint32_t> unanswered;    // of a request in StreamSharing::ending
};

// A request that the worker has not answered to the end.
struct OpenRequest {
  std::shared_ptr<Step> step;
  std::vector<uint32_t> indices;
  size_t open = 0;          // rows that are not answered
  uint64_t open_bytes = 0;  // of their samples, if clients supply them
  MonotonicTime asked_at{};
  Lease lease;  // written by Leases
};

// What is asked on a stream, and is not answered.
struct StreamRequests {
  size_t open_rows = 0;
  uint64_t open_bytes = 0;  // of their samples, if clients supply them
  MonotonicTime last_asked{};
  // When its last group came, or its first row was asked.
  MonotonicTime busy_since{};
  std::unordered_map<uint64_t, OpenRequest> open;  // by id
  // The key is the number that the worker gave the group.
  std::unordered_map<uint64_t, std::shared_ptr<FrameGroup>> groups;
  // The messages that take more rows, by bytes and in place, of the round
  // `message_round`: indices into its messages.
  uint64_t message_round = 0;
  size_t messages[2] = {};
};

// What a worker takes of this consumer's memory.
struct StreamSharing {
  enum class State : uint8_t {
    kUnknown,  // the worker has not said
    kOpening,
    kReady,
    kNone,  // it takes none, or no more
  };
  State state = State::kUnknown;
  std::vector<std::string> device_uuids;  // GPUs whose memory it takes
  std::unordered_set<uint64_t> shared;    // ids of memory
  std::unordered_set<uint64_t> asked;     // offered, and not answered yet
  std::unordered_set<uint64_t> refused;
  size_t stale = 0;  // its leases on quarantined memory
  // Requests with living leases that were withdrawn, or whose stream has
  // closed.
  std::unordered_map<uint64_t, OpenRequest> ending;
};

struct WorkerStream {
  uint16_t worker = 0;    // the endpoint's number
  bool broken = false;    // nothing more is asked here; its end will be told
  bool closed = false;    // its end has been told
  bool retired = false;   // it was idle; its end is no failure
  bool unproven = false;  // who answered is not the worker
  // When the worker last said something on this stream; zero: it has not.
  MonotonicTime last_heard{};
  StreamRequests requests;
  StreamSharing sharing;
  std::shared_ptr<Link> link;  // the owner's; the Fetcher does not touch it
};

}  // namespace leat::client
