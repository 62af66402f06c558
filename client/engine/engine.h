// SPDX-License-Identifier: Apache-2.0
//
// Engine: what moves behind one Batches. One thread plans steps, and does what
// the Fetcher decides; the session with the coordinator tells it who there is.
//
//   part           says                                        of
//   Planner        what the next step is                       the thread
//   EngineState    the Fetcher, and who is woken               all, one lock
//   Links          streams to workers, and memory sockets     all
//   WaitClock      how long the consumer waits                 the lock
//
// Where samples are not stored but supplied, a step is asked for when its feed
// has them; so only the first steps wait for who brings them.
//
// Next from one thread at a time; everything else from any. Stop before the
// last reference is dropped.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "client/batch/step.h"
#include "client/batch/token.h"
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
  Duration waited{0};   // of it, in Next, or as told
  LatencyHistogram wait;
  Duration receiving{0};  // copying rows into place, on all streams
  size_t streams = 0;
  size_t open_rows = 0;    // asked, and not come
  size_t ready_steps = 0;  // complete ones, of the window
  struct Worker {
    std::string name, address;
    uint64_t rows, bytes, failures;
    Duration waited_for;
  };
  std::vector<Worker> workers;
};

class Engine {
 public:
  // kResourceExhausted: the system gives no thread.
  static absl::StatusOr<std::shared_ptr<Engine>> Start(EngineOptions options);
  ~Engine();

  // The next step in order, complete; nullptr: the end. kDeadlineExceeded with
  // the step unharmed; kCancelled; any other error is final.
  absl::StatusOr<std::shared_ptr<Step>> Next(MonotonicTime deadline);
  // If `ahead`: the consumer waits; it has waited since BeginWait, or not at
  // all, and has the step that it wanted, or has not.
  void BeginWait();
  void EndWait(bool delivered);
  void Cancel();
  // Cancels, joins the thread, waits until the links are gone. Not from a
  // link's callback. Idempotent.
  void Stop();

  // After the last step that Next returned.
  Position position() const;
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
  // All but the workers.
  EngineStats Totals(MonotonicTime now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  void AddWorkers(EngineStats* stats) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  // `step` is handed out to who began to want it at `begin`.
  void TraceStep(const Step& step, MonotonicTime begin) const;
  void CheckFailure() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  void CountWait(bool delivered) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);

  const std::shared_ptr<EngineState> shared_;
  EngineState& state_;
  const EngineOptions& options_;
  const std::shared_ptr<Links> links_;
  Planner planner_;                      // the thread's
  LinkProber prober_;                    // the thread's
  std::unique_ptr<SpanReporter> spans_;  // null: without tracer or session
  std::unique_ptr<Session> session_;     // of the thread
  std::thread thread_;
  std::thread feeder_;

  // The next to be handed out.
  Position delivered_ ABSL_GUARDED_BY(state_.mu);
  std::string coordinator_error_ ABSL_GUARDED_BY(state_.mu);
  uint64_t steps_ ABSL_GUARDED_BY(state_.mu) = 0;
  WaitClock waits_ ABSL_GUARDED_BY(state_.mu);
  struct Snapshot {
    MonotonicTime at{};
    uint64_t rows = 0;
    Duration waited{0};
  } last_report_ ABSL_GUARDED_BY(state_.mu);
};

}  // namespace leat::client
