// SPDX-License-Identifier: Apache-2.0
//
// Engine drives one Batches. One thread plans steps, and executes the Fetcher's
// decisions; the session with the coordinator brings the assignments.
//
//   part           says                                        of
//   Planner        what the next step is                       the thread
//   EngineState    the Fetcher, and wakes of threads           all, one lock
//   Links          streams to workers, and memory sockets      all
//   WaitClock      how long the consumer waits                 the lock
//
// If samples are supplied and not stored, a step is requested from workers when
// its feed has the samples; so only the first steps wait for the feeder.
//
// One thread at a time calls Next; any thread may call the rest. Call Stop
// before the last reference is dropped.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "client/batch/position.h"
#include "client/batch/step.h"
#include "client/coordinator/consumer_session.h"
#include "client/coordinator/span_reporter.h"
#include "client/engine/engine_options.h"
#include "client/engine/engine_state.h"
#include "client/engine/link_prober.h"
#include "client/engine/links.h"
#include "client/engine/planner.h"
#include "client/engine/wait_clock.h"
#include "client/fetch/latency.h"
#include "core/mutex.h"

namespace leat::client {

struct EngineStats {
  FetchCounters counters;
  std::string transport;
  uint64_t steps = 0;
  Duration elapsed{0};  // since the first Next
  Duration waited{0};   // part of it: in Next, or as reported
  LatencyHistogram wait;
  Duration receiving{0};  // copying rows into place, on all streams
  size_t streams = 0;
  size_t open_rows = 0;    // requested, not arrived
  size_t ready_steps = 0;  // complete steps in the window
  struct Worker {
    std::string name, address;
    uint64_t rows, bytes, failures;
    Duration waited_for;
    AnswerTimes answers;
  };
  std::vector<Worker> workers;
};

class Engine {
 public:
  // kResourceExhausted: the system has no thread left.
  static absl::StatusOr<std::shared_ptr<Engine>> Start(EngineOptions options);
  ~Engine();

  // Returns the next step in order, complete; nullptr: the end.
  // kDeadlineExceeded leaves the step unchanged; kCancelled; any other error is
  // final.
  absl::StatusOr<std::shared_ptr<Step>> Next(MonotonicTime deadline);
  // With `ahead`: BeginWait reports that the consumer starts to wait, and
  // EndWait that it stops, if it waited, and whether it has its step.
  void BeginWait();
  void EndWait(bool delivered);
  void Cancel();
  // Cancels, joins the thread, and waits until the links are gone. Must not be
  // called from a link's callback. Idempotent.
  void Stop();

  // Returns the step after the last one that Next returned.
  EpochStep next_step() const;
  EngineStats stats() const;

 private:
  explicit Engine(EngineOptions options);
  void Run();
  bool PlanOne();
  void Do(Decisions decided);
  void MoveStep(const std::shared_ptr<Step>& step);
  void Upload(const std::shared_ptr<Step>& step);
  void StartSession();
  absl::Status StartThreads();
  void OnAssignment(const v1::Assignment& assignment);
  v1::ConsumerStats Report();
  std::optional<v1::UnreachedWorkers> Unreached();
  void AddStages(const EngineStats& stats, v1::ConsumerStats* report) const;
  // Returns all statistics except the workers'.
  EngineStats Totals(MonotonicTime now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  void AddWorkers(EngineStats* stats) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  // `step` is delivered to the consumer that has wanted it since `begin`.
  void TraceStep(const Step& step, MonotonicTime begin) const;
  absl::StatusOr<std::shared_ptr<Step>> Await(MonotonicTime deadline,
                                              bool* unjudged);
  // At the iterator's end: returns whether the verdict on the job has come, or
  // its wait is over. Otherwise moves `until` forward to the end of that wait.
  bool Judged(MonotonicTime* until, bool* unjudged)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  bool WantsVerdict(bool at_stop);
  void CheckFailure() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  void CountWait(bool delivered) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);

  const std::shared_ptr<EngineState> shared_;
  EngineState& state_;
  const EngineOptions& options_;
  const std::shared_ptr<Links> links_;
  Planner planner_;                      // the thread's
  JobTables tables_;                     // the session's thread's
  LinkProber prober_;                    // the thread's
  std::unique_ptr<SpanReporter> spans_;  // null: no tracer or session
  std::unique_ptr<Session> session_;     // of the thread
  std::thread thread_;
  std::thread feeder_;

  // The next step to deliver.
  EpochStep delivered_ ABSL_GUARDED_BY(state_.mu);
  std::string coordinator_error_ ABSL_GUARDED_BY(state_.mu);
  // The end of the wait for the verdict; nullopt: it has not begun.
  std::optional<MonotonicTime> verdict_by_ ABSL_GUARDED_BY(state_.mu);
  bool judged_ ABSL_GUARDED_BY(state_.mu) = false;
  uint64_t steps_ ABSL_GUARDED_BY(state_.mu) = 0;
  // The next step was wanted, and was not complete by the deadline.
  bool missed_ ABSL_GUARDED_BY(state_.mu) = false;
  WaitClock waits_ ABSL_GUARDED_BY(state_.mu);
  struct Snapshot {
    MonotonicTime at{};
    uint64_t rows = 0;
    Duration waited{0};
  } last_report_ ABSL_GUARDED_BY(state_.mu);
};

}  // namespace leat::client
