// SPDX-License-Identifier: Apache-2.0
//
// FindBottleneck decides what limits a job, judged by what its consumers and
// the workers did in a period of time.
//
// If threads work for several jobs, their figures cover all of them, and a job
// is judged by the waits of its own next rows: for records, a thread or room.
//
// A stage is the limit if it is busy and does not wait for its input. So the
// judgement begins with the trainer, at the end, and walks to the beginning; no
// verdict follows from one figure:
//
//   the trainer does not wait ───────────────────────────────► trainer
//   it waits, and mostly for samples of the script's own ────► source
//   it waits, and mostly for one worker that delivers little,
//     while the others have time ─────────────────────────────► straggler
//   decode threads or GPUs busy, and not waiting for records ─► decode
//   decode threads wait for room, and finished groups wait
//     for the network ────────────────────────────────────────► network
//   decode threads wait for records, or spend their time in
//     reading them, and reads are under way ──────────────────► storage
//   nothing is busy, and answers wait for each other on their
//     way, in the buffers of a slow link ─────────────────────► network
//   nothing is busy, nothing is under way: rows are requested
//     too late ───────────────────────────────────────────────► window
//
// Figures of too short a period mean nothing: a caller that has only these does
// not call, and reports kUnknown.
//
// Pure: the same figures give the same verdict.
#pragma once

#include <cstdint>
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
    &WorkerStatistics::reading,    &WorkerStatistics::decoding,
    &WorkerStatistics::for_input,  &WorkerStatistics::for_output,
    &WorkerStatistics::for_thread, &WorkerStatistics::fetching,
    &WorkerStatistics::repeated,   &WorkerStatistics::sending};

struct ConsumerStatistics {
  std::string name;
  double rows_per_s = 0;
  double waiting = 0;  // fraction of its time waiting for batches
  double ready = 0;    // fraction of its window's steps that are complete
  // The worker that caused most of the waits, and its fraction of them.
  std::string waited_for;
  double waited_for_share = 0;
  // Fraction of its waits in which the script's own source supplied no samples.
  double for_source = 0;
  // Answers waited for each other on the network, while it waited: for this
  // fraction of the time from request to answer.
  double queued = 0;
  // Fraction of the time in which workers other than `waited_for` had such
  // answers.
  double others_queued = 0;
};

enum class Limit : uint8_t {
  kUnknown,
  kTrainer,
  kNetwork,
  kStorage,
  kDecodeCpu,
  kDecodeGpu,
  kStraggler,
  kWindow,
  kSource,   // the script's own (leat.external_source)
  kWorkers,  // there are no workers
};

// "decode_cpu".
std::string_view Name(Limit limit);
// For people: "decode and augment".
std::string_view Title(Limit limit);
// Returns the title of the limit of this name; an unknown name as it is.
std::string_view TitleOf(std::string_view name);

struct Figure {
  std::string what;
  double value = 0;
  std::string unit;
};

struct Bottleneck {
  Limit limit = Limit::kUnknown;
  std::string subject;          // the worker or consumer that is the cause
  std::string summary;          // a sentence
  std::vector<Figure> figures;  // three; none for kUnknown
  std::string advice;           // the one thing to change
};

// A verdict changes only for a clear reason: thresholds are moved by this
// factor in favour of the previous verdict. So a figure that varies around a
// threshold does not change the verdict.
inline constexpr double kVerdictMargin = 0.2;

// `workers` are those that serve. `own`: their activity for this job; nullptr
// if they have not reported it. `before`: the previous verdict, which is
// returned again unless figures have clearly changed; kUnknown: there is none.
Bottleneck FindBottleneck(const std::vector<WorkerStatistics>& workers,
                          const std::vector<ConsumerStatistics>& consumers,
                          const WorkerStatistics* own = nullptr,
                          Limit before = Limit::kUnknown);

// Returns the verdict for a job that no worker serves: the consumer waits until
// one does.
Bottleneck NoWorkers(const ConsumerStatistics& consumer);

}  // namespace leat
