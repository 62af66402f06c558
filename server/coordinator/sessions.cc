// SPDX-License-Identifier: Apache-2.0
//
// Sessions of workers and consumers.
//
// A session is pulled: whatever is to be sent is noted in it, its `wake` is
// called without the lock, and its stream asks for the next message until there
// is none.
//
//   RegisterWorker ─► Welcome ─► access tokens, log level, directives, owned
//      │           shards, as noted
//      └─ the name again, by the same identity: the older session ends with
//         kAborted; by another: refused, until the worker is lost
//   OpenConsumer ─► the job's failure, if it is given up ─► its newest table,
//      and again whenever it is published; older ones in between are left out
#include <algorithm>
#include <cctype>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/internal.h"

namespace leat::server {
namespace {

constexpr size_t kMaxText = 256;

// What goes into logs, tables and hashes: short and printable.
absl::Status CheckText(std::string_view what, std::string_view text) {
  const bool printable = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) > 32 &&
           static_cast<unsigned char>(c) < 127;
  });
  if (text.empty() || text.size() > kMaxText || !printable)
    return InvalidArgument(
        "{} \"{}\": want 1 to {} printable characters without spaces", what,
        printable ? text.substr(0, 64) : "(unprintable)", kMaxText);
  return absl::OkStatus();
}

absl::Status Stopping() { return Unavailable("the coordinator is stopping"); }

}  // namespace

absl::StatusOr<SessionId> Coordinator::RegisterWorker(
    const WorkerRegistration& registration, Now now, Wake wake) {
  RETURN_IF_ERROR(CheckText("a worker's name", registration.name));
  RETURN_IF_ERROR(CheckText("a worker's address", registration.address));
  RETURN_IF_ERROR(CheckPoolName(registration.pool));
  if (registration.threads == 0)
    return InvalidArgument("worker {}: threads 0: want at least 1",
                           registration.name);
  const bool regressed =
      store_->durable() &&
      registration.highest_sequence_seen > store_->sequence();
  Effects effects;
  MutexLock lock(&mu_);
  if (shut_down_) return Stopping();
  const Membership::Worker* const known = membership_.Find(registration.name);
  if (known != nullptr && !known->lost &&
      known->registration->identity != registration.identity) {
    effects.Add([registration, its = known->registration->identity] {
      LOG_WARN("worker.refused worker={} identity={} registered_by={}",
               registration.name, registration.identity, its);
    });
    return AlreadyExists(
        "worker {} lives, and registered as {}, not as {}: give this one "
        "another --name, or the same access token or certificate; the name is "
        "free once the other is lost",
        registration.name, known->registration->identity,
        registration.identity);
  }
  if (known == nullptr && membership_.full())
    return ResourceExhausted("too many workers: {}",
                             membership_.workers().size());
  NoteStart(now);
  const SessionId id = next_id_++;
  const SessionId replaced = membership_.Register(
      registration, id, state_.drained().contains(registration.name), now);
  if (const auto old = worker_sessions_.find(replaced);
      old != worker_sessions_.end()) {
    effects.Add([name = registration.name, replaced] {
      LOG_WARN("worker.replaced worker={} session={}", name, replaced);
    });
    Happened("worker.replaced", "warn", {"worker/" + registration.name},
             fmt::format("worker {} registered again while its session was "
                         "open: the older one ends",
                         registration.name),
             &effects);
    old->second.replaced = true;
    effects.Add(old->second.wake);
  }
  kept_->Forget(registration.name);
  workers_came_ = true;
  figures_.BeginWorker(registration.name);
  WorkerSession& session = worker_sessions_[id];
  session.name = registration.name;
  session.wake = std::move(wake);
  effects.Add([registration, id, regressed, this] {
    if (regressed)
      LOG_ERROR("state.regressed worker={} has_seen={} sequence={}",
                registration.name, registration.highest_sequence_seen,
                store_->sequence());
    LOG_INFO("worker.joined worker={} address={} threads={} session={}",
             registration.name, registration.address, registration.threads, id);
  });
  Happened("worker.joined", "info", {"worker/" + registration.name},
           fmt::format("worker {} joined from {}, with {} threads, version {}",
                       registration.name, registration.host,
                       registration.threads, registration.version),
           &effects);
  // What the worker's former process was listing is lost.
  GiveUp(indexing_.LoseWorker(registration.name), now, &effects);
  ProlongHold(now);
  MembersChanged(now, &effects);
  AssignListings(now, &effects);
  effects.Add(session.wake);
  return id;
}

absl::Status Coordinator::Heartbeat(SessionId session, WorkerReport report,
                                    const BadSampleReport& bad_samples, Now now,
                                    std::vector<StorageTrouble> troubles) {
  Effects effects;
  MutexLock lock(&mu_);
  const auto it = worker_sessions_.find(session);
  if (it == worker_sessions_.end()) return NotFound("no session {}", session);
  if (it->second.replaced)
    return Aborted("worker {} was registered again by another process",
                   it->second.name);
  Membership::Worker* worker = membership_.Find(session);
  if (worker == nullptr) return NotFound("no session {}", session);
  NoteBadSamples(bad_samples, &effects);
  Seen(now);
  if (report.stats != nullptr)
    effects.Add([this, name = it->second.name, stats = report.stats,
                 mono = now.mono] { figures_.NoteWorker(name, *stats, mono); });
  if (report.stats != nullptr)
    NoteKept(it->second.name, *report.stats, now, &effects);
  const bool was_lost = worker->lost;
  const bool was_troubled = !worker->troubles.empty();
  if (!membership_.Heartbeat(worker, std::move(report), std::move(troubles),
                             now))
    return absl::OkStatus();
  const char* what = was_lost ? "back"
                     : was_troubled != !worker->troubles.empty()
                         ? (was_troubled ? "storage_mended" : "storage_fails")
                         : "weight";
  effects.Add([what, name = it->second.name, weight = worker->weight] {
    LOG_INFO("worker.{} worker={} weight={:.3f}", what, name, weight);
  });
  NoteBeat(*worker, was_lost, was_troubled, &effects);
  if (was_lost) AssignListings(now, &effects);
  MembersChanged(now, &effects);
  return absl::OkStatus();
}

void Coordinator::NoteBadSamples(const BadSampleReport& report,
                                 Effects* effects) {
  for (const JobBadSamples& reported : report.jobs)
    if (state_.FindJob(reported.job) != nullptr)
      bad_samples_.Describe(reported.job, reported.samples);
  for (const CountedBadSamples& counted : report.plans)
    CountBadSamples(counted, effects);
}

// Jobs of one plan may have different budgets, or none.
void Coordinator::CountBadSamples(const CountedBadSamples& counted,
                                  Effects* effects) {
  std::vector<const JobInfo*> standing;  // jobs that can be given up
  for (const std::string& name : state_.JobsWith(counted.plan_hash)) {
    const JobInfo& job = *state_.FindJob(name)->info;
    if (job.spec.max_bad && bad_samples_.Verdict(job).ok())
      standing.push_back(&job);
  }
  if (standing.empty()) return;
  bad_samples_.Count(counted.plan_hash,
                     standing.front()->dataset.shards.num_samples(),
                     counted.samples);
  for (const JobInfo* job : standing) {
    const absl::Status verdict = bad_samples_.Verdict(*job);
    if (verdict.ok()) continue;
    effects->Add([verdict] { LOG_ERROR("job.given_up {}", Message(verdict)); });
    Happened("job.given_up", "error", {"job/" + job->spec.name},
             std::string(Message(verdict)), effects);
    for (const SessionId id : consumers_.OfJob(job->spec.name))
      WakeLater(id, consumers_.Find(id));
    effects->Add(wake_);
  }
}

absl::StatusOr<std::optional<WorkerMessage>> Coordinator::NextForWorker(
    SessionId id) {
  MutexLock lock(&mu_);
  const auto it = worker_sessions_.find(id);
  if (it == worker_sessions_.end()) return NotFound("no session {}", id);
  WorkerSession& session = it->second;
  if (shut_down_) return Stopping();
  if (session.replaced)
    return Aborted("worker {} was registered again by another process",
                   session.name);
  const bool told = std::exchange(session.access_version, access_->version) ==
                    access_->version;
  if (!std::exchange(session.welcomed, true))
    return WorkerMessage(
        Welcome{config_.heartbeat_interval, store_->sequence(), access_});
  if (!told) return WorkerMessage(access_);
  if (!session.log_level.empty())
    return WorkerMessage(
        LogLevelDirective{std::exchange(session.log_level, "")});
  if (!session.directives.empty()) {
    WorkerMessage message(std::move(session.directives.front()));
    session.directives.pop_front();
    return message;
  }
  while (true) {
    std::string dataset;
    if (!session.datasets.empty()) {
      dataset =
          std::move(session.datasets.extract(session.datasets.begin()).value());
    } else if (session.sweeping) {
      dataset = assignments_.DatasetAfter(session.swept);
      session.swept = dataset;
      session.sweeping = !dataset.empty();
    }
    if (dataset.empty()) return std::nullopt;
    OwnedShards owned{dataset, session.name, 0, assignments_.Of(dataset),
                      kept_};
    if (owned.tables.empty()) continue;
    owned.num_shards = owned.tables.front()->num_shards();
    return WorkerMessage(std::move(owned));
  }
}

void Coordinator::CloseWorker(SessionId session, bool left, Now now) {
  Effects effects;
  MutexLock lock(&mu_);
  const auto it = worker_sessions_.find(session);
  if (it == worker_sessions_.end()) return;
  const std::string name = it->second.name;
  const bool replaced = it->second.replaced;
  worker_sessions_.erase(it);
  if (replaced) return;
  kept_->Forget(name);
  effects.Add([name, session, left] {
    LOG_INFO("worker.{} worker={} session={}", left ? "left" : "disconnected",
             name, session);
  });
  Seen(now);
  if (left)
    Happened("worker.left", "info", {"worker/" + name},
             fmt::format("worker {} left in good order", name), &effects);
  else
    Happened("worker.disconnected", "warn", {"worker/" + name},
             fmt::format("the connection to worker {} broke", name), &effects);
  const bool changed = membership_.Disconnect(session, left, now);
  // Nobody answers a listing on a stream that has ended.
  GiveUp(indexing_.LoseWorker(name), now, &effects);
  AssignListings(now, &effects);
  if (changed) MembersChanged(now, &effects);
  effects.Add(wake_);
}

void Coordinator::DrainWorker(const std::string& name, bool drain, Now now,
                              Done done) {
  Effects effects;
  MutexLock lock(&mu_);
  Write write;
  write.decide = [this, name,
                  drain](Effects*) -> absl::StatusOr<std::optional<Event>> {
    mu_.AssertHeld();
    const bool drained = state_.drained().contains(name);
    if (membership_.Find(name) == nullptr && !drained)
      return NotFound("no worker \"{}\"", name);
    if (drained == drain) return std::nullopt;
    Event event;
    if (drain)
      event.kind = WorkerDrained{name};
    else
      event.kind = WorkerUndrained{name};
    return event;
  };
  write.finish = [this, name, drain, now, done = std::move(done)](
                     const absl::Status& status, Effects* inner) {
    mu_.AssertHeld();
    if (status.ok() && membership_.SetDrained(name, drain)) {
      inner->Add([name, drain] {
        LOG_INFO("worker.{} worker={}", drain ? "drained" : "undrained", name);
      });
      Happened(drain ? "worker.drained" : "worker.undrained", "info",
               {"worker/" + name},
               drain ? fmt::format(
                           "worker {} drains: it owns no shard any more", name)
                     : fmt::format("worker {} may own shards again", name),
               inner);
      MembersChanged(now, inner);
      AssignListings(now, inner);
    }
    inner->Add([done, status] { done(status); });
  };
  Enqueue(std::move(write), &effects);
}

absl::Status Coordinator::SetWorkerLogLevel(std::string_view name,
                                            std::string_view level) {
  Effects effects;
  MutexLock lock(&mu_);
  const Membership::Worker* worker = membership_.Find(name);
  if (worker == nullptr) return NotFound("no worker \"{}\"", name);
  const auto it = worker_sessions_.find(worker->session);
  if (it == worker_sessions_.end())
    return Unavailable("worker {} is not connected", name);
  it->second.log_level = std::string(level);
  effects.Add(it->second.wake);
  return absl::OkStatus();
}

absl::StatusOr<SessionId> Coordinator::OpenConsumer(
    const ConsumerOpening& opening, Now now, Wake wake) {
  RETURN_IF_ERROR(CheckText("a consumer's name", opening.consumer));
  Effects effects;
  MutexLock lock(&mu_);
  if (shut_down_) return Stopping();
  const JobRecord* job = state_.FindJob(opening.plan_hash);
  if (job == nullptr)
    return NotFound("no job with plan hash {}", ShortHex(opening.plan_hash));
  if (consumers_.size() >= config_.max_consumers)
    return ResourceExhausted("too many consumers: {}", consumers_.size());
  NoteStart(now);
  if (const JobRecord* named = state_.FindJob(opening.job);
      named != nullptr && named->info->plan_hash == opening.plan_hash)
    job = named;
  figures_.BeginConsumer(opening.consumer);
  const SessionId id = next_id_++;
  Consumer opened;
  opened.opening = opening;
  opened.job = job->info->spec.name;
  opened.key = KeyOf(*job->info);
  opened.wake = std::move(wake);
  opened.opened_at = opened.last_report_at = now.wall;
  const Consumer& consumer = consumers_.Add(id, std::move(opened));
  for (const std::string& name : state_.JobsWith(opening.plan_hash))
    used_at_[name] = now.mono;
  UseTable(*job->info, &effects);
  effects.Add([opening, job = consumer.job] {
    LOG_INFO("consumer.opened consumer={} job={} host={} pid={}",
             opening.consumer, job, opening.host, opening.pid);
  });
  Happened("consumer.opened", "info",
           {"consumer/" + opening.consumer, "job/" + consumer.job},
           fmt::format("consumer {} on {} pulls batches of job {}",
                       opening.consumer, opening.host, consumer.job),
           &effects);
  effects.Add(consumer.wake);
  return id;
}

absl::Status Coordinator::ReportConsumer(SessionId session,
                                         ConsumerReport report, Now now) {
  Effects effects;
  MutexLock lock(&mu_);
  Consumer* const found = consumers_.Find(session);
  if (found == nullptr) return NotFound("no session {}", session);
  Seen(now);
  Consumer& consumer = *found;
  if (report.stats != nullptr)
    effects.Add(
        [this, name = consumer.opening.consumer, stats = report.stats,
         mono = now.mono] { figures_.NoteConsumer(name, *stats, mono); });
  if (auto unreached = std::exchange(report.unreached, std::nullopt)) {
    const std::string& name = consumer.opening.consumer;
    const std::string& host = consumer.opening.host;
    for (const UnreachedWorker& each : unreached_.Say(
             name, {consumer.job, host, *std::move(unreached), now.mono})) {
      effects.Add([name, each] {
        LOG_WARN("consumer.cannot_reach consumer={} worker={} reason=\"{}\"",
                 name, each.worker, each.why);
      });
      Happened(
          "consumer.cannot_reach", "warn",
          {"consumer/" + name, "job/" + consumer.job, "worker/" + each.worker},
          fmt::format("consumer {} on {} cannot reach worker {}: {}", name,
                      host, each.worker, each.why),
          &effects);
    }
  }
  const bool stalls = report.stall_fraction >= config_.stall_fraction;
  consumer.report = std::move(report);
  consumer.last_report_at = now.wall;
  if (!stalls)
    consumer.stalled_since.reset();
  else if (!consumer.stalled_since)
    consumer.stalled_since = now.mono;
  return absl::OkStatus();
}

// None yet: the consumer is woken when there is one.
absl::StatusOr<std::shared_ptr<const Assignment>> Coordinator::NextForConsumer(
    SessionId session) {
  MutexLock lock(&mu_);
  if (shut_down_) return Stopping();
  Consumer* const consumer = consumers_.Find(session);
  if (consumer == nullptr) return NotFound("no session {}", session);
  if (!consumer->pending) return nullptr;
  std::shared_ptr<const Assignment> table = assignments_.Get(consumer->key);
  consumer->pending = table == nullptr;
  return table;
}

std::optional<absl::Status> Coordinator::FailureForConsumer(SessionId session) {
  MutexLock lock(&mu_);
  Consumer* const consumer = consumers_.Find(session);
  if (consumer == nullptr || consumer->told_failure) return std::nullopt;
  const JobRecord* job = state_.FindJob(consumer->job);
  if (job == nullptr) return std::nullopt;
  absl::Status verdict = bad_samples_.Verdict(*job->info);
  if (verdict.ok()) return std::nullopt;
  consumer->told_failure = true;
  return verdict;
}

void Coordinator::CloseConsumer(SessionId session, Now now) {
  Effects effects;
  MutexLock lock(&mu_);
  const std::optional<Consumer> consumer = consumers_.Remove(session);
  if (!consumer) return;
  effects.Add([name = consumer->opening.consumer, job = consumer->job] {
    LOG_INFO("consumer.closed consumer={} job={}", name, job);
  });
  Seen(now);
  Happened("consumer.closed", "info",
           {"consumer/" + consumer->opening.consumer, "job/" + consumer->job},
           fmt::format("consumer {} of job {} ended at epoch {}, step {}",
                       consumer->opening.consumer, consumer->job,
                       consumer->report.epoch, consumer->report.step),
           &effects);
  ReleaseTable(consumer->key, &effects);
}

std::shared_ptr<const Assignment> Coordinator::AssignmentOf(
    const std::string& dataset_id, DecoderClass decoder_class,
    const Digest& decoders) const {
  MutexLock lock(&mu_);
  return assignments_.Get({dataset_id, decoder_class, decoders});
}

uint64_t Coordinator::member_visits() const {
  MutexLock lock(&mu_);
  return membership_.visits();
}

}  // namespace leat::server
