// SPDX-License-Identifier: Apache-2.0
//
// WorkerEndpoint: a worker as this consumer knows it.
//
// Its state says why it is avoided, and `until` for how long:
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
// delivers: only a delivery after `until` makes it active, so an active worker
// is never avoided. A worker that is silent becomes suspect in any state. A
// worker that fails backs off, except for a faulty one, which stays faulty.
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
  kStopped,     // as kSuspect; its rows are requested elsewhere too
};

struct WorkerEndpoint {
  bool left_alone(MonotonicTime now) const { return until > now; }
  bool silent() const {
    return state == EndpointState::kSuspect || state == EndpointState::kStopped;
  }
  // Returns whether the stream is open, and the worker has sent something on
  // it.
  bool reached() const {
    return stream && stream->last_heard != MonotonicTime{};
  }

  AssignmentTable::Worker ref;
  uint64_t who = 0;      // ID of its name; outlives the endpoint's number
  bool present = false;  // the newest table names it
  bool former = false;   // the previous table named it
  std::shared_ptr<WorkerStream> stream;

  EndpointState state = EndpointState::kActive;
  MonotonicTime until{};     // it is avoided
  MonotonicTime early_at{};  // when it may be asked if no other is available
  uint32_t failures_in_row = 0;
  // Duration of the latest fault backoff, doubled by a fault before
  // `fault_counts_until`.
  Duration fault_backoff{0};
  MonotonicTime fault_counts_until{};

  uint32_t leased_streams = 0;  // closed ones with active leases
  uint64_t failures = 0;
  uint64_t rows = 0;
  uint64_t bytes = 0;
  Duration waited_for{0};  // part of the consumer's waits that it caused
  AnswerTimes answers;
  double row_ns = 0;  // its time per row; 0: unknown
  // Recent rows and the time that they took; older ones count less.
  double spent_ns = 0, spent_rows = 0;
  // Bound on the bytes of client-supplied samples outstanding at this worker;
  // 0: no bound of its own.
  uint64_t supplied_bytes = 0;
  Transport transport = Transport::kAuto;  // of its latest rows; kAuto: none
  std::string last_error;
  bool looked_at = false;      // was probed since it became unreached
  std::string hindrance;       // result of the probe; empty: none
  uint32_t settled_looks = 0;  // consecutive probes with a permanent reason
  absl::StatusCode last_code = absl::StatusCode::kOk;  // status of its last
                                                       // ended stream
};

}  // namespace leat::client
