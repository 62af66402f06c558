// SPDX-License-Identifier: Apache-2.0
//
// The records that the parts of a Fetcher share. A Peer is a worker as this
// consumer met it. A Lane is one stream to it, from the first ask to the
// stream's end, with what is asked there (deliveries.h) and what is lent there
// (leases.h).
//
// Thread-compatible: the Fetcher's owner locks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "client/batch/step.h"
#include "client/fetch/assignment_table.h"
#include "client/fetch/fetcher_config.h"
#include "core/clock.h"

namespace leat::client {

class Link;

// Rows that travel together: those of one answer that comes in pieces, or those
// of a step that are copied from memory to memory.
struct Group {
  uint64_t id = 0;  // unique in the Fetcher
  uint64_t ask_id = 0;
  std::shared_ptr<Step> step;
  std::vector<uint32_t> indices;  // of the step's rows, in the group's order
  std::vector<uint8_t> mine;      // parallel: this piece may write the row
  uint64_t payload_bytes = 0;
  uint64_t received = 0;
  std::shared_ptr<StepMemory> memory;  // the rows are written here
  // The rows are copied from here; null: they come in a frame.
  std::shared_ptr<StepMemory> source;
};

// A piece of a group that is to be copied now. If the group has a source:
// step->CopyRows(*source, *memory, indices, mine); else, from the frame:
// step->Scatter(*memory, indices, mine, offset, ...).
struct Piece {
  std::shared_ptr<Group> group;
  uint64_t peer_group = 0;  // the worker's number of the group
  uint64_t offset = 0;
  bool last = false;
};

// An ask that the worker has not answered to the end.
struct OpenAsk {
  std::shared_ptr<Step> step;
  std::vector<uint32_t> indices;
  size_t open = 0;          // rows that are not answered
  uint64_t open_bytes = 0;  // of their samples, if they are brought
  MonotonicTime asked_at{};
  // The worker writes the rows here; null: it sends their bytes.
  std::shared_ptr<StepMemory> memory;
  bool on_device = false;            // in the device's part of `memory`
  bool leased = false;               // the worker may still write there
  std::vector<uint32_t> unanswered;  // of an ask in Lane::ending
};

// What a worker takes of this consumer's memory.
struct Lending {
  enum class State : uint8_t {
    kUnknown,  // the worker has not said
    kOpening,
    kReady,
    kNone,  // it takes none, or no more
  };
  State state = State::kUnknown;
  std::vector<std::string> device_uuids;  // GPUs whose memory it takes
  std::unordered_set<uint64_t> lent;      // ids of memory
  std::unordered_set<uint64_t> asked;     // offered, and not answered yet
  std::unordered_set<uint64_t> refused;
  size_t stale = 0;  // its leases on quarantined memory
};

struct Lane {
  uint16_t worker = 0;    // the peer's number
  bool broken = false;    // nothing more is asked here; its end will be told
  bool closed = false;    // its end has been told
  bool retired = false;   // it was idle; its end is no failure
  bool unproven = false;  // who answered is not the worker
  size_t open_rows = 0;
  uint64_t open_bytes = 0;  // of their samples, if they are brought
  // When the worker last said something on this stream; zero: it has not.
  MonotonicTime last_heard{};
  MonotonicTime last_asked{};
  // When its last group came, or its first row was asked.
  MonotonicTime busy_since{};
  std::unordered_map<uint64_t, OpenAsk> asks;  // by id
  // The key is the number that the worker gave the group.
  std::unordered_map<uint64_t, std::shared_ptr<Group>> groups;
  // The messages that take more rows, by bytes and in place, of the round
  // `message_round`: indices into its messages.
  uint64_t message_round = 0;
  size_t messages[2] = {};
  Lending lending;
  // Asks that were withdrawn, or whose lane has closed, with leases that live.
  std::unordered_map<uint64_t, OpenAsk> ending;
  std::shared_ptr<Link> link;  // the owner's; the Fetcher does not touch it
};

struct Peer {
  // When it may be asked again.
  MonotonicTime avoided_until() const {
    return std::max(avoid_until, fault_until);
  }

  AssignmentTable::Worker ref;
  uint64_t who = 0;      // of its name; outlives the peer's number
  bool present = false;  // the newest table names it
  bool former = false;   // the table before named it
  // It owes late rows, and is silent. `stopped`: others deliver meanwhile, and
  // all that it owes is asked elsewhere.
  bool suspect = false;
  bool stopped = false;
  bool faulty = false;  // it blames itself, and has delivered nothing since
  std::shared_ptr<Lane> lane;
  MonotonicTime avoid_until{};
  MonotonicTime fault_until{};
  Duration fault_backoff{0};
  MonotonicTime early_at{};  // when it may be asked if nobody else can be
  uint32_t failures_in_row = 0;
  uint32_t leased_lanes = 0;  // closed ones, with leases that live
  uint64_t failures = 0;
  uint64_t rows = 0;
  uint64_t bytes = 0;
  Duration waited_for{0};  // of the consumer's waits, those that it caused
  double row_ns = 0;       // that a row takes it; 0: not known
  // The newest rows, of which older ones count less, and what they took.
  double spent_ns = 0, spent_rows = 0;
  // Bytes of brought samples that it may owe at a time; 0: no bound of its own.
  uint64_t brought_bytes = 0;
  Plane plane = Plane::kAuto;  // of its newest rows; kAuto: none
  std::string last_error;
  bool looked_at = false;      // why it is not reached, just now
  std::string hindrance;       // what was found; empty: nothing
  uint32_t settled_looks = 0;  // in a row: time does not mend what they found
  absl::StatusCode last_code = absl::StatusCode::kOk;  // of a stream's end
};

// A message to a lane: ask for rows; or, without rows, withdraw `ask_id`; or,
// if that is 0, only open the lane.
struct LaneMessage {
  std::shared_ptr<Lane> lane;
  uint64_t ask_id = 0;
  uint64_t epoch = 0;
  uint64_t step = 0;
  std::vector<uint32_t> rows;
  std::vector<uint64_t> samples;
  std::vector<uint64_t> absent;  // samples that are agreed not to be there
  uint64_t memory_id = 0;        // 0: the rows come as bytes
  std::vector<uint32_t> places;  // in that memory, parallel to rows
  std::shared_ptr<const Brought> brought;  // the samples; null: stored ones
  uint64_t brought_bytes = 0;
};

// Memory that is to be lent to a lane's worker.
struct Loan {
  std::shared_ptr<Lane> lane;
  std::shared_ptr<BatchMemory> memory;
};

}  // namespace leat::client
