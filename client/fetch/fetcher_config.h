// SPDX-License-Identifier: Apache-2.0
//
// FetcherConfig: how a Fetcher behaves, and its bounds.
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
  Duration hedge_cold = std::chrono::seconds(1);  // while p95 is not known
  // Faults make p95 long, which would make the next fault longer: at most this
  // × the median is patience, where that is more than hedge_cold.
  double patience_median_factor = 4;
  // A worker that owes rows is silent after this, or after p95 if longer.
  Duration silence_min = std::chrono::milliseconds(300);
  // Of the rows that are asked, this share may be asked a second time because
  // they are late, and `hedge_burst` more. While the consumer waits and workers
  // deliver, the same share of the head's rows is added each second; a tenth of
  // it while none does, since then nobody would be sooner; and all of them
  // while a worker has nothing to do.
  double hedge_share = 0.1;
  uint32_t hedge_burst = 32;
  // A worker that fails is left alone for a time that doubles, of which
  // `random` takes up to a half away. It draws from [0, 1); null: it draws 0.
  Duration backoff_min = std::chrono::milliseconds(100);
  Duration backoff_max = std::chrono::seconds(5);
  std::function<double()> random;
  // While the consumer waits, and nobody else can be asked, those that are left
  // alone are asked again so long after they failed: 32 of them in this time.
  Duration backoff_waiting = std::chrono::seconds(1);
  // The same for a worker that says that the fault is its own (FAULT_WORKER).
  Duration fault_backoff_min = std::chrono::seconds(1);
  Duration fault_backoff_max = std::chrono::seconds(30);
  // A worker that does not find a sample is asked for that row again after
  // this: where it is the only one, and where there are others.
  Duration object_again_alone = std::chrono::seconds(1);
  Duration object_again = std::chrono::seconds(5);
  Duration row_timeout = std::chrono::minutes(2);
  // A step that the consumer has waited for so long is described, once.
  Duration late_note = std::chrono::seconds(1);
  // Errors of a row that are final by their number: bugs of workers
  // (kInternal, kUnknown). Errors that say "not now" cost time only.
  uint32_t max_row_errors = 6;
  Duration stream_idle = std::chrono::minutes(1);  // then a stream is closed
  // A row spills from the first owner when its backlog lasts `spill_factor`
  // times as long as another owner's with `spill_rows` rows more, and longer
  // still by what it takes for its fair share of the window, or by
  // `spill_least` if that is less. An owner keeps of its rows what makes them
  // several times cheaper than they are elsewhere, so that short waits cost
  // less than spilling.
  double spill_factor = 1.5;
  uint32_t spill_rows = 8;
  Duration spill_least = std::chrono::milliseconds(60);
  // When every worker has ended this many streams in a row for a reason that
  // time does not mend (no such job, wrong token, ...), that is final too.
  uint32_t max_refusals = 4;
  Transport transport = Transport::kAuto;
  std::string needed;  // what not every worker has, for people; may be empty
  // Bounds.
  uint32_t max_request_rows = 8192;  // of one message
  // The bytes of client-supplied samples: in one message, if it has more than
  // one, and outstanding on one stream, where the last request may go beyond.
  uint64_t max_request_bytes = 1 << 20;
  uint64_t max_stream_bytes = 32 << 20;
  uint32_t max_stream_rows = 65536;   // outstanding on one stream
  uint32_t max_stream_groups = 4096;  // answers begun on one stream
  uint32_t max_absent = 256;          // samples of one row (RequestRows.absent)
  // Rows come by bytes while so many buffers wait for their leases' ends; as
  // many steps as the window has may add one each.
  uint32_t max_quarantined = 8;
};

}  // namespace leat::client
