// SPDX-License-Identifier: Apache-2.0
#include "client/engine/engine.h"

#include <algorithm>
#include <utility>

#include "client/device/device_batches.h"
#include "core/log.h"
#include "core/plan/plan.h"
#include "core/status.h"
#include "core/thread.h"

namespace leat::client {
namespace {

// Streams end within microseconds of Cancel; this only bounds a broken one.
constexpr Duration kStopTimeout = std::chrono::seconds(5);

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
    : options_(std::move(options)),
      lender_(std::make_unique<Lender>(options_.lend, options_.layout,
                                       LenderEvents())),
      prober_(
          options_.probe,
          [this](const std::string& address, const rpc::Hindrance& hindrance) {
            MutexLock lock(&mu_);
            fetcher_.Looked(address, hindrance);
            Settle();
          }),
      fetcher_(options_.fetch, options_.shards),
      delivered_(options_.start),
      planned_(options_.start) {
  if (options_.table) fetcher_.SetTable(options_.table);
  options_.pool->SetOnDropped([lender = lender_.get()] { lender->Sweep(); });
}

Engine::~Engine() = default;

void Engine::StartSession() {
  if (!options_.sessions) return;
  if (options_.tracer != nullptr)
    spans_ = std::make_unique<SpanReporter>(
        options_.tracer, options_.open.plan_hash(), options_.open.consumer());
  // The session is stopped before the engine goes: `this` is safe.
  session_ = std::make_unique<Session>(
      options_.session, options_.open,
      Session::Callbacks{.on_assignment =
                             [this](const v1::Assignment& assignment) {
                               OnAssignment(assignment);
                             },
                         .on_failure =
                             [this](const absl::Status& status) {
                               MutexLock lock(&mu_);
                               if (error_.ok()) error_ = status;
                               ready_.NotifyAll();
                             },
                         .on_lost =
                             [this](const absl::Status& status) {
                               MutexLock lock(&mu_);
                               coordinator_error_ =
                                   std::string(Message(status));
                               Wake();
                             },
                         .stats = [this] { return Report(); },
                         .unreached = [this] { return Unreached(); },
                         .on_trace =
                             [this](const v1::TraceConsumer& wanted) {
                               if (!spans_) return;
                               spans_->Begin(wanted, Now());
                               MutexLock lock(&mu_);
                               Wake();
                             },
                         .spans =
                             [this](MonotonicTime now) {
                               return spans_ ? spans_->Take(now)
                                             : SpanReporter::Due();
                             },
                         .on_sheet =
                             [this](const v1::WantSheet& wanted) {
                               if (options_.sheets)
                                 options_.sheets->Begin(wanted);
                             },
                         .sheet = [this]() -> std::optional<v1::RowsSheet> {
                           if (!options_.sheets) return std::nullopt;
                           return options_.sheets->Take();
                         }},
      options_.sessions);
}

absl::Status Engine::StartThreads() {
  if (options_.feed) {
    // Taken back before the engine goes: `this` is safe.
    options_.feed->SetOnReady([this] {
      MutexLock lock(&mu_);
      Wake();
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
  absl::StatusOr<std::shared_ptr<const AssignmentTable>> table =
      AssignmentTable::FromProto(assignment, options_.dataset_id,
                                 options_.shards.num_shards());
  if (!table.ok()) {
    LOG_WARN("assignment.refused job={} reason=\"{}\"", options_.job,
             Message(table.status()));
    return;
  }
  if (options_.on_table) options_.on_table(*table);
  MutexLock lock(&mu_);
  coordinator_error_.clear();
  if (!(*table)->Replaces(fetcher_.table().assignment())) return;
  fetcher_.SetTable(*std::move(table));
  Settle();
}

void Engine::Wake() {
  wake_ = true;
  wanted_.NotifyOne();
}

// After the Fetcher was told something: wakes who has to act.
void Engine::Settle() {
  if (fetcher_.TakeDirty()) Wake();
  if (!fetcher_.leases().plane_error().ok() ||
      (fetcher_.num_steps() > 0 &&
       (fetcher_.head().ready() || !fetcher_.head().error.ok())))
    ready_.NotifyAll();
}

bool Engine::AtEnd(const Position& position) const {
  return options_.end_epoch != 0 && position.epoch >= options_.end_epoch;
}

Position Engine::After(Position position) const {
  if (++position.step < options_.steps_per_epoch) return position;
  return {position.epoch + 1, 0};
}

void Engine::Run() {
  while (true) {
    const bool planned = PlanOne();
    Decisions decided;  // what it holds is dropped without the lock
    {
      MutexLock lock(&mu_);
      if (cancelled_) break;
      decided = fetcher_.Decide(Now());
      if (fetcher_.num_steps() > 0 && !fetcher_.head().error.ok())
        ready_.NotifyAll();
    }
    decided.released.clear();
    if (!decided.warning.empty())
      LOG_WARN("rows.waiting job={} reason=\"{}\"", options_.job,
               decided.warning);
    if (!decided.note.empty())
      LOG_DEBUG("step.late job={} {}", options_.job, decided.note);
    Perform(decided.messages);
    if (options_.probe) prober_.Ask(std::move(decided.looks));
    EndIdle(decided.idle);
    for (Loan& loan : decided.loans)
      lender_->Lend(std::move(loan.lane), std::move(loan.memory));
    for (const std::shared_ptr<Step>& step : decided.to_move) MoveStep(step);
    for (const std::shared_ptr<Step>& step : decided.uploads) Upload(step);
    MonotonicTime due = decided.due;
    if (session_) due = std::min(due, session_->Tick(Now()));
    if (planned) continue;
    MutexLock lock(&mu_);
    if (!wake_ && !cancelled_) wanted_.WaitUntil(&mu_, due);
  }
  if (session_) session_->Stop();
  std::vector<std::shared_ptr<Link>> links;
  {
    MutexLock lock(&mu_);
    for (const WorkerEndpoint& endpoint : fetcher_.table().endpoints())
      if (endpoint.lane && endpoint.lane->link)
        links.push_back(endpoint.lane->link);
  }
  for (const std::shared_ptr<Link>& link : links) link->Cancel();
}

// Has what is not on the device yet copied there.
void Engine::Upload(const std::shared_ptr<Step>& step) {
  // The device's thread is stopped before the engine goes: `this` is safe.
  options_.device->Upload(*step, [this, step](const absl::Status& status) {
    MutexLock lock(&mu_);
    fetcher_.Uploaded(*step, status);
    Settle();
  });
}

std::optional<Feed::Result> Engine::BroughtFor(
    const Position& position, std::span<const uint64_t> samples) {
  if (!options_.feed) return Feed::Result(nullptr);
  std::vector<uint64_t> wanted(samples.begin(), samples.end());
  std::erase(wanted, kNoSample);
  return options_.feed->Take(position.epoch, wanted);
}

// Adds one step to the window, if there is room. The first batches' memory is
// fresh and slow: the step before is asked for already.
bool Engine::PlanOne() {
  Position position;
  {
    MutexLock lock(&mu_);
    wake_ = false;  // what happens from here on is looked at in another round
    if (cancelled_ || !error_.ok() || AtEnd(planned_) ||
        fetcher_.num_steps() >= options_.window ||
        fetcher_.brought_bytes() > options_.max_brought_bytes)
      return false;
    position = planned_;
  }
  if (options_.feed && (options_.feed->waiting() || feed_failed_)) return false;
  std::vector<uint64_t> samples(options_.map->rows().size());
  options_.plan(position.epoch, position.step, samples);
  std::optional<Feed::Result> brought = BroughtFor(position, samples);
  if (!brought) return false;
  absl::StatusOr<BatchPool::Buffer> buffer = options_.pool->Take();
  absl::Status status = buffer.status();
  if (status.ok() && options_.fetch.plane == Plane::kShared &&
      buffer->memory()->fd() < 0 &&
      buffer->memory()->reuse() != BatchMemory::Reuse::kNever)
    status = FailedPrecondition(
        "LEAT_PLANE=shm: this system gives no memory that can be shared "
        "(memfd_create with sealing)");
  MutexLock lock(&mu_);
  if (!status.ok()) {
    error_ = status;
    ready_.NotifyAll();
    return false;
  }
  auto step =
      std::make_shared<Step>(position.epoch, position.step, options_.map,
                             samples, options_.layout, *std::move(buffer));
  if (brought->ok()) {
    step->brought = **std::move(brought);
  } else {
    feed_failed_ = true;
    step->Fail(brought->status());
  }
  if (options_.tracer != nullptr) {
    step->trace = options_.tracer->Step(options_.open.plan_hash(), options_.job,
                                        options_.open.consumer(),
                                        position.epoch, position.step);
    if (step->trace) step->planned_at = Now();
  }
  fetcher_.AddStep(std::move(step), Now());
  planned_ = After(position);
  Settle();  // a step may have no rows here
  return true;
}

absl::StatusOr<std::shared_ptr<Step>> Engine::Next(MonotonicTime deadline) {
  MutexLock lock(&mu_);
  const MonotonicTime begin = Now();
  if (first_next_ == MonotonicTime{}) first_next_ = begin;
  if (!options_.ahead) waiting_since_ = begin;
  bool told = false;
  while (true) {
    if (cancelled_) {
      CountWait(begin, false);
      return Cancelled("the iterator was cancelled");
    }
    if (fetcher_.num_steps() > 0 && fetcher_.head().ready()) {
      std::shared_ptr<Step> step = fetcher_.PopHead(Now());
      delivered_ = After(delivered_);
      ++steps_;
      CountWait(begin, true);
      if (step->trace) TraceStep(*step, begin);
      Wake();
      return step;
    }
    if (error_.ok()) error_ = fetcher_.leases().plane_error();
    if (error_.ok() && fetcher_.num_steps() > 0) {
      error_ = fetcher_.head().error;
      if (absl::IsDeadlineExceeded(error_)) {
        if (!coordinator_error_.empty())
          error_ = Unavailable("{}; coordinator: {}", Message(error_),
                               coordinator_error_);
        else
          error_ = Unavailable("{}", Message(error_));
      }
    }
    if (!error_.ok() || AtEnd(delivered_)) {
      CountWait(begin, false);
      if (!error_.ok()) return error_;
      return nullptr;
    }
    fetcher_.set_waiting(true);
    if (!std::exchange(told, true)) {
      if (!options_.ahead) fetcher_.BeginWait(Now());
      Wake();
    }
    if (Now() >= deadline) {
      fetcher_.set_waiting(false);
      CountWait(begin, false);
      return DeadlineExceeded("epoch {} step {}: not complete yet",
                              delivered_.epoch, delivered_.step);
    }
    ready_.WaitUntil(&mu_, deadline);
  }
}

void Engine::BeginWait() {
  MutexLock lock(&mu_);
  if (!options_.ahead) return;
  waiting_since_ = Now();
  fetcher_.BeginWait(waiting_since_);
}

void Engine::EndWait(bool delivered) {
  MutexLock lock(&mu_);
  if (!options_.ahead) return;
  const bool waited = waiting_since_ != MonotonicTime{};
  AddWait(waited ? Now() - waiting_since_ : Duration(0), delivered);
}

void Engine::CountWait(MonotonicTime begin, bool delivered) {
  if (!options_.ahead) AddWait(Now() - begin, delivered);
}

void Engine::AddWait(Duration wait, bool delivered) {
  waiting_since_ = {};
  waited_ += wait;
  step_wait_ += wait;
  fetcher_.EndWait(Now());
  if (delivered) wait_.Add(std::exchange(step_wait_, Duration(0)));
}

void Engine::Cancel() {
  // Not with the lock: who feeds may be about to wake the thread.
  if (options_.feed) options_.feed->Close();
  MutexLock lock(&mu_);
  cancelled_ = true;
  wanted_.NotifyAll();
  ready_.NotifyAll();
}

void Engine::Stop() {
  Cancel();
  if (options_.feed) options_.feed->SetOnReady(nullptr);
  if (feeder_.joinable()) feeder_.join();
  if (thread_.joinable()) thread_.join();
  prober_.Stop();
  const MonotonicTime deadline = Now() + kStopTimeout;
  std::shared_ptr<Engine> self;  // the caller has another
  {
    MutexLock lock(&mu_);
    while (open_links_ > 0 && closed_.WaitUntil(&mu_, deadline)) {
    }
    stopped_ = true;
    self = std::move(self_);
  }
  // What is leased still is never used again: it goes with the engine.
  if (options_.device) options_.device->Stop();
  options_.pool->SetOnDropped(nullptr);
  lender_->Stop();
}

}  // namespace leat::client
