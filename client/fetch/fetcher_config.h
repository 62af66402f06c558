// SPDX-License-Identifier: Apache-2.0
//
// FetcherConfig: the behaviour of a Fetcher, and its bounds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "client/fetch/transport.h"
#include "core/clock.h"

namespace leat::client {

struct FetcherConfig {
  // Behaviour.
  Duration hedge_min = std::chrono::milliseconds(100);
  double hedge_p95_factor = 3;  // a row is late after this × p95 of all rows
  Duration hedge_cold = std::chrono::seconds(1);  // while p95 is unknown
  // Faults raise p95, which would delay the reaction to the next fault: p95
  // counts at most this × the median, if that is more than hedge_cold.
  double patience_median_factor = 4;
  // A worker with outstanding rows is silent after this, or after p95 if
  // longer.
  Duration silence_min = std::chrono::milliseconds(300);
  // This share of the requested rows may be requested a second time because
  // they are late, and `hedge_burst` more. While the consumer waits and workers
  // deliver, the same share of the head's rows is added per second; a tenth of
  // it while none delivers, since then no other worker would be faster; and all
  // of them while a worker is idle.
  double hedge_share = 0.1;
  uint32_t hedge_burst = 32;
  // A failed worker is avoided for a time that doubles, shortened by up to a
  // half by `random`, which draws from [0, 1); null: it draws 0.
  Duration backoff_min = std::chrono::milliseconds(100);
  Duration backoff_max = std::chrono::seconds(5);
  std::function<double()> random;
  // While the consumer waits, and no other worker is available, avoided workers
  // are asked again this long after they failed: 32 of them in this time.
  Duration backoff_waiting = std::chrono::seconds(1);
  // The same for a worker that reports a fault of its own (FAULT_WORKER).
  Duration fault_backoff_min = std::chrono::seconds(1);
  Duration fault_backoff_max = std::chrono::seconds(30);
  // A worker that does not find a sample is asked for that row again after
  // this: if it is the only worker, and if there are others.
  Duration object_again_alone = std::chrono::seconds(1);
  Duration object_again = std::chrono::seconds(5);
  Duration row_timeout = std::chrono::minutes(2);
  // A step that the consumer has waited for this long is described, once.
  Duration late_note = std::chrono::seconds(1);
  // How many errors of a row that indicate bugs of workers (kInternal,
  // kUnknown) are final. Errors that say "not now" only cost time.
  uint32_t max_row_errors = 6;
  Duration stream_idle = std::chrono::minutes(1);  // until a stream is closed
  // A row spills from the primary owner when its backlog lasts `spill_factor`
  // times as long as another owner's with `spill_rows` more rows, and longer
  // still by the time for its fair share of the window, or by `spill_least` if
  // that is less. An owner caches its rows, which makes them several times
  // cheaper than elsewhere, so that short waits cost less than spilling.
  double spill_factor = 1.5;
  uint32_t spill_rows = 8;
  Duration spill_least = std::chrono::milliseconds(60);
  // An error is also final when every worker has ended this many streams in a
  // row for a permanent reason (no such job, wrong token, ...).
  uint32_t max_refusals = 4;
  Transport transport = Transport::kAuto;
  std::string needed;  // what some workers lack, for people; may be empty
  // Bounds.
  uint32_t max_request_rows = 8192;  // per message
  // Bounds on the bytes of client-supplied samples: per message with several
  // rows, and outstanding per stream, where the last request may exceed it.
  uint64_t max_request_bytes = 1 << 20;
  uint64_t max_stream_bytes = 32 << 20;
  uint32_t max_stream_rows = 65536;   // outstanding per stream
  uint32_t max_stream_groups = 4096;  // answers begun per stream
  uint32_t max_absent = 256;          // samples per row (RequestRows.absent)
  // Rows come as bytes while this many buffers wait for the ends of their
  // leases; each step of the window may add one more.
  uint32_t max_quarantined = 8;
};

}  // namespace leat::client
