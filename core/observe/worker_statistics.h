// SPDX-License-Identifier: Apache-2.0
//
// WorkerStatistics: what one or several workers did in a period.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leat {

// The activity of a worker in a period. The values from `reading` on are
// fractions of that period, from 0 to 1, and averages over the threads or
// streams.
struct WorkerStatistics {
  std::string name;
  double workers = 1;  // above 1, the figures are means, and the rows a sum
  double threads = 1;  // the total of all workers
  double rows_per_s = 0;
  // Fractions of the decode threads' time.
  double reading = 0;     // in storage and caches
  double decoding = 0;    // decoding and all other operators
  double for_input = 0;   // waiting for records that are being read
  double for_output = 0;  // waiting for room
  // Set only in one job's figures, whose waits are those of its next row:
  // waiting for a decode thread.
  double for_thread = 0;
  // Set only there: fraction of the job's rows that workers made whose GPUs
  // were busier than their threads; of the periods of their quota of
  // processors in which it was used up; and the source that took most of the
  // reading from storage, with its fraction of that. Empty: there is none.
  double of_gpus = 0;
  double quota_used_up = 0;
  std::string slow_source;
  double slow_source_share = 0;
  // Fractions of the period itself.
  // Read-ahead threads at work: 1 is one thread at all times.
  double fetching = 0;
  // Requests to remote storage that repeat a failed one, of all requests.
  double repeated = 0;
  double sending = 0;  // a stream has finished groups that are not sent
  double device = -1;  // GPUs have groups on them; negative: it has no GPU
};

// These fractions are averaged over threads.
inline constexpr double WorkerStatistics::*kWorkerShares[] = {
    &WorkerStatistics::reading,      &WorkerStatistics::decoding,
    &WorkerStatistics::for_input,    &WorkerStatistics::for_output,
    &WorkerStatistics::for_thread,   &WorkerStatistics::fetching,
    &WorkerStatistics::repeated,     &WorkerStatistics::sending,
    &WorkerStatistics::quota_used_up};

// Returns the share of their time in which decode threads work.
double BusyShare(const WorkerStatistics& worker);

// Averages the workers weighted by threads, and GPUs over workers that have
// some. `without`: the name of one that is left out.
WorkerStatistics MeanOf(const std::vector<WorkerStatistics>& workers,
                        std::string_view without = "");

}  // namespace leat
