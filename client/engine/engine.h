// SPDX-License-Identifier: Apache-2.0
//
// Engine: what moves behind one Batches: a Fetcher under a lock, one thread
// that plans steps and sends what the Fetcher decides, the links to workers
// whose threads copy rows into place, the lending sockets, and the session with
// the coordinator.
//
// Where samples are not stored but brought, a step is asked for when its feed
// has them; so only the first steps wait for who brings them.
//
// One mutex; nothing is sent, copied, planned or allocated while it is held.
// Next from one thread at a time; everything else from any. Stop before the
// last reference is dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "client/batch/batch_pool.h"
#include "client/batch/feed.h"
#include "client/batch/step.h"
#include "client/batch/token.h"
#include "client/coordinator/consumer_session.h"
#include "client/coordinator/sheet_reporter.h"
#include "client/coordinator/span_reporter.h"
#include "client/engine/lender.h"
#include "client/engine/link.h"
#include "client/engine/link_prober.h"
#include "client/fetch/fetcher.h"
#include "client/fetch/latency.h"
#include "core/mutex.h"
#include "core/observe/tracing.h"
#include "core/pipeline/finish.h"
#include "core/plan/shard_table.h"

namespace leat::client {

class DeviceBatches;

struct EngineOptions {
  // The job. `plan` is pure: samples[i] = the sample of map->rows()[i].
  std::string job;
  std::string dataset_id;
  ShardTable shards;
  uint64_t steps_per_epoch = 0;
  std::function<void(uint64_t epoch, uint64_t step, std::span<uint64_t>)> plan;

  // The part of the job from `start` to `end_epoch` is delivered.
  Position start;
  uint64_t end_epoch = 1;  // the first one not delivered; 0: without end
  std::shared_ptr<const RowMap> map;
  std::shared_ptr<const BatchLayout> layout;
  std::shared_ptr<BatchPool> pool;
  std::shared_ptr<DeviceBatches>
      device;           // whose memory it is; null: the host's
  uint32_t window = 4;  // steps
  // Who calls Next is not who waits: BeginWait and EndWait are told.
  bool ahead = false;
  // Where brought samples come from; null: workers read them. Steps are not
  // begun while those under way have brought more than `max_brought_bytes`.
  std::shared_ptr<Feed> feed;
  std::shared_ptr<SampleSource>
      source;  // serves the feed; null: the owner does
  uint64_t max_brought_bytes = 4ull << 30;
  Finish finish = Finish::kWorker;

  // These say how rows are fetched.
  FetcherConfig fetch;
  Lender::Config lend;
  Session::Config session;
  LinkFactory links;
  // Why an address is not reached; null: nobody looks.
  LinkProber::Probe probe;
  Session::Opener sessions;  // null: no coordinator, only `table`
  v1::OpenConsumer open;
  std::shared_ptr<const AssignmentTable> table;  // known already; may be null
  // Whose listeners see steps; outlives the engine. nullptr: nobody does.
  Tracer* tracer = nullptr;
  // Asked to show rows, by the session; null: it shows none.
  std::shared_ptr<SheetReporter> sheets;
  // Told each new table; may be null.
  std::function<void(std::shared_ptr<const AssignmentTable>)> on_table;
};

struct EngineStats {
  FetchCounters counters;
  std::string plane;
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

class Engine : public std::enable_shared_from_this<Engine> {
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
  class Handler;

  explicit Engine(EngineOptions options);
  void Run();
  bool PlanOne();
  // The samples of a step: null where workers read them; nullopt: not yet.
  std::optional<Feed::Result> BroughtFor(const Position& position,
                                         std::span<const uint64_t> samples);
  void Perform(const std::vector<LaneMessage>& messages);
  // Whether the worker may still write to what it was lent.
  bool EndLane(Lane& lane, const absl::Status& status);
  // The last that a link's handler does: it gives its reference back, so that
  // who stops the engine is the one that drops it, and all its memory.
  void Detach(std::shared_ptr<Engine> self);
  void MoveStep(const std::shared_ptr<Step>& step);
  // Copies the rows until they are in their step's memory.
  void Move(MovePiece& piece);
  void Upload(const std::shared_ptr<Step>& step);
  Lender::Events LenderEvents();
  void OnLendingFailed(Lane& lane, const absl::Status& status);
  void OnLendingClosed(Lane& lane);
  std::shared_ptr<Link> LinkOf(const std::shared_ptr<Lane>& lane);
  void StartSession();
  absl::Status StartThreads();
  void OnAssignment(const v1::Assignment& assignment);
  v1::ConsumerStats Report();
  std::optional<v1::UnreachedWorkers> Unreached();
  void AddStages(const EngineStats& stats, v1::ConsumerStats* report) const;
  // All but the workers.
  EngineStats Totals(MonotonicTime now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddWorkers(EngineStats* stats) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndIdle(const std::vector<std::shared_ptr<Lane>>& lanes);
  Position After(Position position) const;
  bool AtEnd(const Position& position) const;
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Settle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // `step` is handed out to who began to want it at `begin`.
  void TraceStep(const Step& step, MonotonicTime begin) const;
  void CountWait(MonotonicTime begin, bool delivered)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddWait(Duration wait, bool delivered)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const EngineOptions options_;
  const std::unique_ptr<Lender> lender_;
  LinkProber prober_;                    // the thread's
  std::unique_ptr<SpanReporter> spans_;  // null: without tracer or session
  std::unique_ptr<Session> session_;     // of the thread
  std::thread thread_;
  std::thread feeder_;
  bool feed_failed_ = false;  // the thread's: no step follows

  mutable Mutex mu_;
  CondVar ready_;   // for Next
  CondVar wanted_;  // for the thread
  CondVar closed_;  // for Stop
  Fetcher fetcher_ ABSL_GUARDED_BY(mu_);
  Position delivered_ ABSL_GUARDED_BY(mu_);  // the next to be handed out
  Position planned_ ABSL_GUARDED_BY(mu_);    // the next to be planned
  absl::Status error_ ABSL_GUARDED_BY(mu_);  // final
  std::string coordinator_error_ ABSL_GUARDED_BY(mu_);
  bool wake_ ABSL_GUARDED_BY(mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  size_t open_links_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<Engine> self_ ABSL_GUARDED_BY(mu_);  // until it is stopped

  // Statistics.
  MonotonicTime first_next_ ABSL_GUARDED_BY(mu_){};
  MonotonicTime waiting_since_ ABSL_GUARDED_BY(mu_){};  // zero: not waiting
  Duration waited_ ABSL_GUARDED_BY(mu_){0};
  Duration step_wait_ ABSL_GUARDED_BY(mu_){0};
  uint64_t steps_ ABSL_GUARDED_BY(mu_) = 0;
  LatencyHistogram wait_ ABSL_GUARDED_BY(mu_);
  Duration receiving_ ABSL_GUARDED_BY(mu_){0};
  struct Snapshot {
    MonotonicTime at{};
    uint64_t rows = 0;
    Duration waited{0};
  } last_report_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::client
