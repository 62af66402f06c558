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
//   decode threads or GPUs busy, and not waiting for records ─► decode; on
//     GPUs, if workers whose GPUs are busier than their threads made most of
//     the job's rows, or no thread is busy
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

#include <string>
#include <vector>

#include "core/observe/limit.h"
#include "core/observe/worker_statistics.h"

namespace leat {

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

struct Figure {
  std::string what;
  double value = 0;
  std::string unit;
};

struct Bottleneck {
  Limit limit = Limit::kUnknown;
  std::string subject;  // the worker, consumer or source that is the cause
  std::string summary;  // a sentence
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
