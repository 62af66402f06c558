// SPDX-License-Identifier: Apache-2.0
#include "client/engine/engine.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "client/device/device_batches.h"
#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"

namespace leat::client {
namespace {

MonotonicTime Now() { return Clock::Real().Now(); }

}  // namespace

absl::StatusOr<std::shared_ptr<Engine>> Engine::Start(EngineOptions options) {
  std::shared_ptr<Engine> engine(new Engine(std::move(options)));
  engine->StartSession();
  if (const absl::Status status = engine->StartThreads(); !status.ok()) {
    engine->Stop();
    return status;
  }
  return engine;
}

Engine::Engine(EngineOptions options)
    : shared_(std::make_shared<EngineState>(std::move(options))),
      state_(*shared_),
      options_(state_.options),
      links_(std::make_shared<Links>(shared_)),
      planner_(options_),
      tables_(options_.datasets),
      prober_(
          options_.probe,
          [this](const std::string& address, const rpc::Hindrance& hindrance) {
            MutexLock lock(&state_.mu);
            state_.fetcher.Looked(address, hindrance);
            state_.Settle();
          }),
      delivered_(options_.start) {
  if (options_.table) state_.fetcher.SetTable(options_.table);
  options_.pool->SetOnDropped([links = links_.get()] { links->Sweep(); });
}

Engine::~Engine() = default;

void Engine::StartSession() {
  if (!options_.sessions) return;
  if (options_.tracer != nullptr)
    spans_ = std::make_unique<SpanReporter>(
        options_.tracer, options_.open.plan_hash(), options_.open.consumer());
  // The session is stopped before the engine is destroyed: `this` is safe.
  session_ = std::make_unique<Session>(
      options_.session, options_.open,
      Session::Callbacks{
          .on_assignment =
              [this](const v1::Assignment& assignment) {
                OnAssignment(assignment);
              },
          .on_failure =
              [this](const absl::Status& status) {
                MutexLock lock(&state_.mu);
                state_.Fail(status);
              },
          .on_lost =
              [this](const absl::Status& status) {
                MutexLock lock(&state_.mu);
                coordinator_error_ = std::string(Message(status));
                state_.Wake();
              },
          .stats = [this] { return Report(); },
          .unreached = [this] { return Unreached(); },
          .on_trace =
              [this](const v1::TraceConsumer& wanted) {
                if (!spans_) return;
                spans_->Begin(wanted, Now());
                MutexLock lock(&state_.mu);
                state_.Wake();
              },
          .spans =
              [this](MonotonicTime now) {
                return spans_ ? spans_->Take(now) : SpanReporter::Due();
              },
          .on_sheet =
              [this](const v1::WantSheet& wanted) {
                if (options_.sheets) options_.sheets->Begin(wanted);
              },
          .sheet = [this]() -> std::optional<v1::RowsSheet> {
            if (!options_.sheets) return std::nullopt;
            return options_.sheets->Take();
          },
          .on_settled =
              [this] {
                MutexLock lock(&state_.mu);
                judged_ = true;
                state_.ready.NotifyAll();
              },
          .settles = [this](bool at_stop) { return WantsVerdict(at_stop); }},
      options_.sessions);
}

absl::Status Engine::StartThreads() {
  if (options_.feed) {
    // The callback is removed before the engine is destroyed: `this` is safe.
    options_.feed->SetOnReady([this] {
      MutexLock lock(&state_.mu);
      state_.Wake();
    });
  }
  if (options_.feed && options_.source)
    RETURN_IF_ERROR(StartThread(
        "feeder",
        [feed = options_.feed, source = options_.source] {
          feed->Serve(*source);
        },
        &feeder_));
  return StartThread(
      "engine", [this] { Run(); }, &thread_);
}

void Engine::OnAssignment(const v1::Assignment& assignment) {
  absl::StatusOr<JobTables::Table> table = tables_.Offer(assignment);
  if (!table.ok()) {
    LOG_WARN("assignment.refused job={} reason=\"{}\"", options_.job,
             Message(table.status()));
    return;
  }
  if (*table != nullptr && options_.on_table) options_.on_table(*table);
  MutexLock lock(&state_.mu);
  coordinator_error_.clear();
  if (*table == nullptr ||
      !(*table)->Replaces(state_.fetcher.table().assignment()))
    return;
  state_.fetcher.SetTable(*std::move(table));
  state_.Settle();
}

void Engine::Run() {
  while (true) {
    const bool planned = PlanOne();
    Decisions decided;
    {
      MutexLock lock(&state_.mu);
      if (state_.cancelled) break;
      decided = state_.fetcher.Decide(Now());
      if (state_.fetcher.num_steps() > 0 && !state_.fetcher.head().error.ok())
        state_.ready.NotifyAll();
    }
    MonotonicTime due = decided.due;
    Do(std::move(decided));
    if (session_) due = std::min(due, session_->Tick(Now()));
    if (planned) continue;
    MutexLock lock(&state_.mu);
    if (!state_.wake && !state_.cancelled)
      state_.wanted.WaitUntil(&state_.mu, due);
  }
  links_->Cancel();  // they end while the session sends its last report
  if (session_) session_->Stop();
}

void Engine::Do(Decisions decided) {
  decided.released.clear();
  if (!decided.warning.empty())
    LOG_WARN("rows.waiting job={} reason=\"{}\"", options_.job,
             decided.warning);
  if (!decided.note.empty())
    LOG_DEBUG("step.late job={} {}", options_.job, decided.note);
  links_->Send(decided.messages);
  if (options_.probe) prober_.Ask(std::move(decided.looks));
  links_->EndIdle(decided.idle);
  links_->Share(std::move(decided.offers));
  for (const std::shared_ptr<Step>& step : decided.to_move) MoveStep(step);
  for (const std::shared_ptr<Step>& step : decided.uploads) Upload(step);
}

// Gives the step memory that no silent worker can write to. The links' threads
// do not do this, since fresh memory is slow.
void Engine::MoveStep(const std::shared_ptr<Step>& step) {
  absl::StatusOr<BatchPool::Buffer> buffer = options_.pool->Take();
  std::optional<MovePiece> piece;
  {
    MutexLock lock(&state_.mu);
    if (state_.cancelled) return;
    if (!buffer.ok()) return state_.Fail(buffer.status());
    piece = state_.fetcher.leases().MoveToNewBuffer(step, &*buffer);
    state_.Settle();
  }
  if (piece) state_.Move(*piece);
}

// Starts copying the rows that are not on the device yet.
void Engine::Upload(const std::shared_ptr<Step>& step) {
  // The device's thread is stopped before the engine is destroyed: `this` is
  // safe.
  options_.device->Upload(*step, [this, step](const absl::Status& status) {
    MutexLock lock(&state_.mu);
    state_.fetcher.Uploaded(*step, status);
    state_.Settle();
  });
}

// Adds one step to the window, if there is room. The first batches' memory is
// fresh and slow: meanwhile the previous step has been requested already.
bool Engine::PlanOne() {
  {
    MutexLock lock(&state_.mu);
    // Later events are handled in another round.
    state_.wake = false;
    if (state_.cancelled || !state_.error.ok() ||
        state_.fetcher.num_steps() >= options_.window ||
        state_.fetcher.supplied_bytes() > options_.max_supplied_bytes)
      return false;
  }
  absl::StatusOr<std::shared_ptr<Step>> step = planner_.Next();
  if (step.ok() && *step == nullptr) return false;
  MutexLock lock(&state_.mu);
  if (!step.ok()) {
    state_.Fail(step.status());
    return false;
  }
  state_.fetcher.AddStep(*std::move(step), Now());
  state_.Settle();  // a step may have no rows here
  return true;
}

absl::StatusOr<std::shared_ptr<Step>> Engine::Next(MonotonicTime deadline) {
  bool unjudged = false;
  absl::StatusOr<std::shared_ptr<Step>> step = Await(deadline, &unjudged);
  if (unjudged)
    LOG_WARN(
        "job.not_judged job={} reason=\"the coordinator did not say within {} "
        "whether more samples are bad than max_bad allows: leat describe job\"",
        options_.job,
        absl::FormatDuration(absl::FromChrono(options_.verdict_patience)));
  return step;
}

bool Engine::Judged(MonotonicTime* until, bool* unjudged) {
  if (!options_.budget || !options_.sessions || judged_) return true;
  if (!verdict_by_) {
    verdict_by_ = Now() + options_.verdict_patience;
    state_.Wake();
  }
  *until = std::min(*until, *verdict_by_);
  if (Now() < *verdict_by_) return false;
  judged_ = *unjudged = true;
  return true;
}

// A run that is closed half-way requests the verdict when it stops.
bool Engine::WantsVerdict(bool at_stop) {
  MutexLock lock(&state_.mu);
  return options_.budget && !judged_ && state_.error.ok() &&
         (at_stop ? steps_ > 0 : verdict_by_.has_value());
}

absl::StatusOr<std::shared_ptr<Step>> Engine::Await(MonotonicTime deadline,
                                                    bool* unjudged) {
  MutexLock lock(&state_.mu);
  Fetcher& fetcher = state_.fetcher;
  const MonotonicTime begin = Now();
  waits_.Asked(begin);
  if (!options_.ahead) waits_.Begin(begin);
  bool told = false;
  while (true) {
    if (state_.cancelled) {
      CountWait(false);
      return Cancelled("the iterator was cancelled");
    }
    if (fetcher.num_steps() > 0 && fetcher.head().ready()) {
      std::shared_ptr<Step> step = fetcher.PopHead(Now());
      delivered_ = options_.After(delivered_);
      ++steps_;
      missed_ = false;
      CountWait(true);
      if (step->trace) TraceStep(*step, begin);
      state_.Wake();
      return step;
    }
    CheckFailure();
    MonotonicTime until = deadline;
    if (!state_.error.ok() ||
        (options_.AtEnd(delivered_) && Judged(&until, unjudged))) {
      CountWait(false);
      if (!state_.error.ok()) return state_.error;
      return nullptr;
    }
    fetcher.set_waiting(true);
    if (!std::exchange(told, true)) {
      if (!options_.ahead) fetcher.BeginWait(Now());
      state_.Wake();
    }
    if (Now() >= deadline) {
      // A consumer that comes back for the same step waits in between, too.
      fetcher.set_waiting(std::exchange(missed_, true));
      CountWait(false);
      return DeadlineExceeded("epoch {} step {}: not complete yet",
                              delivered_.epoch, delivered_.step);
    }
    state_.ready.WaitUntil(&state_.mu, until);
  }
}

// An error of the head is the iterator's error.
void Engine::CheckFailure() {
  absl::Status& error = state_.error;
  if (error.ok()) error = state_.fetcher.leases().transport_error();
  if (!error.ok() || state_.fetcher.num_steps() == 0) return;
  error = state_.fetcher.head().error;
  if (!absl::IsDeadlineExceeded(error)) return;
  if (coordinator_error_.empty())
    error = Unavailable("{}", Message(error));
  else
    error =
        Unavailable("{}; coordinator: {}", Message(error), coordinator_error_);
}

void Engine::BeginWait() {
  MutexLock lock(&state_.mu);
  if (!options_.ahead) return;
  const MonotonicTime now = Now();
  waits_.Begin(now);
  state_.fetcher.BeginWait(now);
}

void Engine::EndWait(bool delivered) {
  MutexLock lock(&state_.mu);
  if (!options_.ahead) return;
  const MonotonicTime now = Now();
  waits_.End(now, delivered);
  state_.fetcher.EndWait(now);
}

// Ends a wait in Next.
void Engine::CountWait(bool delivered) {
  if (options_.ahead) return;
  const MonotonicTime now = Now();
  waits_.End(now, delivered);
  state_.fetcher.EndWait(now);
}

void Engine::Cancel() {
  // Called without the lock: the feeder may be about to wake the thread.
  if (options_.feed) options_.feed->Close();
  MutexLock lock(&state_.mu);
  state_.cancelled = true;
  state_.wanted.NotifyAll();
  state_.ready.NotifyAll();
}

void Engine::Stop() {
  Cancel();
  if (options_.feed) options_.feed->SetOnReady(nullptr);
  if (feeder_.joinable()) feeder_.join();
  if (thread_.joinable()) thread_.join();
  prober_.Stop();
  links_->Stop();
  // Memory that is still leased is never reused: it is freed with the engine.
  if (options_.device) options_.device->Stop();
  options_.pool->SetOnDropped(nullptr);
  links_->StopSharing();
}

}  // namespace leat::client
