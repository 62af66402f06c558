// SPDX-License-Identifier: Apache-2.0
//
// WorkerEndpoint: a worker as this consumer met it.
//
// Its state says why it is left alone, and `until` for how long:
//
//                 fails                      fails
//      ┌───────────────────► kBackingOff ◄───────────────┐
//      │ ◄── delivers ───────────┘  ▲                    │
//      │                            │ delivers too early │
//      │     kWorker fault          │                    │
//   kActive ───────────────────► kFaulty                 │
//      │ ◄── delivers ──────────────┘                    │
//      │                                                 │
//      │     silent                   others deliver     │
//      └───────────────────► kSuspect ───────────► kStopped
//        ◄── says something ────┴─────────────────────┘
//
// A worker whose time is over is asked again, and keeps its state until it
// delivers: only what it delivers after `until` makes it active. So an active
// worker is never left alone. A worker becomes suspect in any state if it is
// silent. One that fails backs off, but for a faulty one, which stays faulty.
//
// Thread-compatible: the Fetcher's owner locks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "client/fetch/assignment_table.h"
#include "client/fetch/fetcher_config.h"
#include "client/fetch/worker_stream.h"
#include "core/clock.h"

namespace leat::client {

enum class EndpointState : uint8_t {
  kActive,
  kBackingOff,  // it failed
  kFaulty,      // it reported a fault of its own
  kSuspect,     // it owes late rows, and is silent
  kStopped,     // as kSuspect; all that it owes is asked elsewhere, too
};

struct WorkerEndpoint {
  bool left_alone(MonotonicTime now) const { return until > now; }
  bool silent() const {
    return state == EndpointState::kSuspect || state == EndpointState::kStopped;
  }
  // The stream lives, and the worker has said something on it.
  bool reached() const {
    return stream && stream->last_heard != MonotonicTime{};
  }

  AssignmentTable::Worker ref;
  uint64_t who = 0;      // of its name; outlives the endpoint's number
  bool present = false;  // the newest table names it
  bool former = false;   // the table before named it
  std::shared_ptr<WorkerStream> stream;

  EndpointState state = EndpointState::kActive;
  MonotonicTime until{};     // it is left alone
  MonotonicTime early_at{};  // when it may be asked if nobody else can be
  uint32_t failures_in_row = 0;
  // The newest fault's time, which a fault before `fault_counts_until` doubles.
  Duration fault_backoff{0};
  MonotonicTime fault_counts_until{};

  uint32_t leased_streams = 0;  // closed ones, with leases that live
  uint64_t failures = 0;
  uint64_t rows = 0;
  uint64_t bytes = 0;
  Duration waited_for{0};  // of the consumer's waits, those that it caused
  double row_ns = 0;       // that a row takes it; 0: not known
  // The newest rows, of which older ones count less, and what they took.
  double spent_ns = 0, spent_rows = 0;
  // Bytes of client-supplied samples that it may owe at a time; 0: no bound of
  // its own.
  uint64_t supplied_bytes = 0;
  Transport transport = Transport::kAuto;  // of its newest rows; kAuto: none
  std::string last_error;
  bool looked_at = false;      // why it is not reached, just now
  std::string hindrance;       // what was found; empty: nothing
  uint32_t settled_looks = 0;  // in a row: time does not mend what they found
  absl::StatusCode last_code = absl::StatusCode::kOk;  // of a stream's end
};

}  // namespace leat::client
