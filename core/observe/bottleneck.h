// SPDX-License-Identifier: Apache-2.0
//
// FindBottleneck: what limits a job, judged by what its consumers and the
// workers did in a while.
//
// A stage limits if it is busy while it does not wait for its input. So the
// judgement begins at the end, with the trainer, and walks to the beginning;
// no verdict follows from one figure:
//
// Where threads work for other jobs, too, what they do is of all jobs, and a
// job is judged by what its own next rows wait for: records, a thread or room.
//
//   the trainer does not wait ───────────────────────────────► trainer
//   it waits, and mostly for one worker that delivers little ─► straggler
//   decode threads or GPUs busy, and not waiting for records ─► decode
//   decode threads wait for room, and finished groups wait
//     for the network ────────────────────────────────────────► network
//   decode threads wait for records, or spend their time in
//     reading them, and reads are under way ──────────────────► storage
//   nobody is busy, nothing is under way: rows are asked for
//     too late ───────────────────────────────────────────────► window
//
// Figures of too short a time are nobody's: who asks gives none of them, and
// says kUnknown.
//
// Pure: the same figures give the same verdict.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

// The figures say what a worker did in a period. Those from `reading` on are
// shares of that period, from 0 to 1, and averages over the threads or streams.
struct WorkerFigures {
  std::string name;
  double workers = 1;  // more: the figures are means, and the rows a sum
  double threads = 1;  // of all of them
  double rows_per_s = 0;
  // The decode threads spend these shares of their time.
  double reading = 0;     // in storage and caches
  double decoding = 0;    // decoding and all other operators
  double for_input = 0;   // waiting for records that are being read
  double for_output = 0;  // waiting for room
  // Of one job's figures alone, whose waits are those of the next of its rows:
  // for a decode thread.
  double for_thread = 0;
  // These are shares of the period itself.
  double fetching = 0;  // read-ahead threads at work: 1 is one thread, always
  double sending = 0;   // a stream has finished groups that are not sent
  double device = -1;   // GPUs have groups on them; negative: it has none
};

struct ConsumerFigures {
  std::string name;
  double rows_per_s = 0;
  double waiting = 0;  // of its time, for batches
  double ready = 0;    // of its window, steps that are complete
  // The worker that caused most of the waits, and its share of them.
  std::string waited_for;
  double waited_for_share = 0;
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
  kWorkers,  // there are none
};

// "decode_cpu".
std::string_view Name(Limit limit);
// For people: "decode and augment".
std::string_view Title(Limit limit);

struct Figure {
  std::string what;
  double value = 0;
  std::string unit;
};

struct Bottleneck {
  Limit limit = Limit::kUnknown;
  std::string subject;          // the worker or consumer it is about
  std::string summary;          // a sentence
  std::vector<Figure> figures;  // three, but of kUnknown
  std::string advice;           // the one thing to change
};

// What a verdict changes for is clear: thresholds are this much farther away
// from a verdict that was given before. So a figure that moves about one of
// them changes nothing.
inline constexpr double kVerdictMargin = 0.2;

// `workers`: those that serve. `own`: what they did for this job; null: they
// have not told it. `before`: the verdict that was given last, which is given
// again unless figures have clearly changed; kUnknown: none.
Bottleneck FindBottleneck(const std::vector<WorkerFigures>& workers,
                          const std::vector<ConsumerFigures>& consumers,
                          const WorkerFigures* own = nullptr,
                          Limit before = Limit::kUnknown);

// While none serves: whatever the consumer has waited so far, it will wait.
Bottleneck NoWorkers(const ConsumerFigures& consumer);

}  // namespace leat
