// SPDX-License-Identifier: Apache-2.0
//
// WorkerStream: one stream to a worker, from its first request to its end.
//
//   part              holds                         written by
//   StreamRequests    what is asked and answered    Deliveries
//   StreamSharing     what memory is shared         Leases
//   the rest          the stream itself             Fetcher, EndpointTable
//
// A request has a Lease if the worker writes its rows in place. When such a
// request is withdrawn, or its stream ends, while the lease is active,
// Deliveries hands the request to Leases, which keeps it in
// StreamSharing::ending.
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

// An answer: rows that come together, in one frame or in several.
struct FrameGroup {
  uint64_t id = 0;  // unique in the Fetcher
  uint64_t request_id = 0;
  std::shared_ptr<Step> step;
  std::vector<uint32_t> indices;  // in the step's rows, in the group's order
  std::vector<uint8_t> mine;      // parallel: this piece may write the row
  uint64_t payload_bytes = 0;
  uint64_t received = 0;
  Duration at_worker{0};  // part of the time to the answer; 0: not known
  std::shared_ptr<StepMemory> memory;  // the rows are written here
};

// The bytes of one frame that are to be copied: step->Scatter(*memory, indices,
// mine, offset, ...), with its group's members.
struct FramePiece {
  std::shared_ptr<FrameGroup> group;
  uint64_t number = 0;  // the group's number at the worker
  uint64_t offset = 0;
  bool last = false;
};

// Rows that arrived in memory that is no longer their step's, and are to be
// copied: step->CopyRows(*from, *to, indices, mine).
struct MovePiece {
  uint64_t id = 0;          // the claim on its rows, as FrameGroup::id
  uint64_t request_id = 0;  // their request; 0: several
  std::shared_ptr<Step> step;
  std::vector<uint32_t> indices;
  std::vector<uint8_t> mine;
  std::shared_ptr<StepMemory> from, to;
};

// A Lease: the access of a request's worker to the step's memory.
struct Lease {
  std::shared_ptr<StepMemory> memory;  // null: the rows come as bytes
  bool on_device = false;              // in the device's part of `memory`
  bool lives = false;                  // the worker may still write there
  std::vector<uint32_t> unanswered;    // for a request in StreamSharing::ending
};

// A request that the worker has not fully answered.
struct OpenRequest {
  std::shared_ptr<Step> step;
  std::vector<uint32_t> indices;
  size_t open = 0;          // rows without an answer
  uint64_t open_bytes = 0;  // of client-supplied samples
  MonotonicTime asked_at{};
  Lease lease;  // written by Leases
};

// Times of requests whose rows came as bytes; means, if rows came one by one.
struct AnswerTimes {
  Duration all{0};     // from requests to answers
  Duration queued{0};  // part of it: on the network, beyond the least trip
};

// The outstanding requests of a stream.
struct StreamRequests {
  size_t open_rows = 0;
  uint64_t open_bytes = 0;  // of client-supplied samples
  MonotonicTime last_asked{};
  // When its last group came, or its first row was requested.
  MonotonicTime busy_since{};
  // The least time that an answer spent on the network, there and back.
  Duration least_trip = Duration::max();
  std::unordered_map<uint64_t, OpenRequest> open;  // by ID
  // Keyed by the worker's number of the group.
  std::unordered_map<uint64_t, std::shared_ptr<FrameGroup>> groups;
  // Messages that take more rows, as bytes and in place, in the round
  // `message_round`: indices into its messages.
  uint64_t message_round = 0;
  size_t messages[2] = {};
};

// StreamSharing: the memory of this consumer that a worker accepts.
struct StreamSharing {
  enum class State : uint8_t {
    kUnknown,  // the worker has not said
    kOpening,
    kReady,
    kNone,  // it accepts none, or no more
  };
  State state = State::kUnknown;
  std::vector<std::string> device_uuids;  // GPUs whose memory it accepts
  std::unordered_set<uint64_t> shared;    // IDs of memory
  std::unordered_set<uint64_t> asked;     // offered, without an answer yet
  std::unordered_set<uint64_t> refused;
  size_t stale = 0;  // its leases on quarantined memory
  // Requests with active leases that were withdrawn, or whose stream has
  // closed.
  std::unordered_map<uint64_t, OpenRequest> ending;
};

struct WorkerStream {
  uint16_t worker = 0;    // the endpoint's number
  bool broken = false;    // no more requests; Closed follows
  bool closed = false;    // Closed was called
  bool retired = false;   // it was idle; its end is no failure
  bool unproven = false;  // the peer is not the worker
  // When the worker last sent something on this stream; zero: never.
  MonotonicTime last_heard{};
  StreamRequests requests;
  StreamSharing sharing;
  std::shared_ptr<Link> link;  // the owner's; the Fetcher does not use it
};

}  // namespace leat::client
