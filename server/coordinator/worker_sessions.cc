// SPDX-License-Identifier: Apache-2.0
//
// Sessions of workers.
//
// Sessions are pulled: messages to send are noted in the session, its `wake` is
// called without the lock, and its stream asks for the next message until there
// is none.
//
//   RegisterWorker ─► Welcome ─► access tokens, log level, directives, owned
//      │           shards, as noted
//      └─ the name again, by the same identity: the older session ends with
//         kAborted; by another: refused, until the worker is lost
#include <algorithm>
#include <utility>

#include "core/counted.h"
#include "core/log.h"
#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/parts.h"

namespace leat::server {
namespace {

// kAlreadyExists, kResourceExhausted: it may not register.
absl::Status MayRegister(const WorkerRegistration& registration,
                         const Membership::Worker* known, const Parts& parts,
                         DeferredActions* deferred) {
  if (known != nullptr && !known->lost &&
      known->registration->identity != registration.identity) {
    deferred->Add([registration, its = known->registration->identity] {
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
  if (known == nullptr && parts.membership.full())
    return ResourceExhausted("too many workers: {}",
                             parts.membership.workers().size());
  return absl::OkStatus();
}

// Announces the changes of a heartbeat.
void TellBeat(const Membership::Worker& worker, bool was_lost, bool was_failing,
              Parts* parts, DeferredActions* deferred) {
  const std::string& name = worker.registration->name;
  const std::string weight = fmt::format("weight={:.3f}", worker.weight);
  const bool failing = !worker.failures.empty();
  if (was_lost)
    parts->announcer.Tell({"worker.back",
                           "info",
                           {"worker/" + name},
                           fmt::format("worker {} is heard of again", name),
                           weight},
                          deferred);
  if (was_failing && !failing) {
    parts->announcer.Tell(
        {"worker.storage_recovered",
         "info",
         {"worker/" + name},
         fmt::format("worker {} reads its storage again", name),
         weight},
        deferred);
  } else if (failing && !was_failing) {
    const v1::StorageFailure& first = worker.failures.front();
    parts->announcer.Tell({"worker.storage_fails",
                           "warn",
                           {"worker/" + name},
                           fmt::format("worker {} cannot read {}: {}", name,
                                       first.root(), first.error())},
                          deferred);
  } else if (!was_lost) {  // weight changes are frequent, so no event
    deferred->Add([name, weight] {
      LOG_INFO("worker.weight worker={} {}", name, weight);
    });
  }
}

// Jobs of one plan may have different budgets, or none.
void CountBadSamples(const CountedBadSamples& counted, Parts* parts,
                     DeferredActions* deferred) {
  const State& state = parts->state;
  std::vector<const JobInfo*> standing;  // jobs that are not given up yet
  for (const std::string& name : state.JobsWith(counted.plan_hash)) {
    const JobInfo& job = *state.FindJob(name)->info;
    if (job.spec.max_bad && parts->bad_samples.Verdict(job).ok())
      standing.push_back(&job);
  }
  if (standing.empty()) return;
  parts->bad_samples.Count(counted.plan_hash, NumSamples(*standing.front()),
                           counted.samples);
  for (const JobInfo* job : standing) {
    const absl::Status verdict = parts->bad_samples.Verdict(*job);
    if (verdict.ok()) continue;
    parts->announcer.Tell({"job.given_up",
                           "error",
                           {"job/" + job->spec.name},
                           std::string(Message(verdict))},
                          deferred);
    for (const SessionId id : parts->sessions.consumers().OfJob(job->spec.name))
      parts->sessions.WakeLater(id);
    deferred->Add(parts->wake);
  }
}

void NoteBadSamples(const BadSampleReport& report, Parts* parts,
                    DeferredActions* deferred) {
  for (const JobBadSamples& reported : report.jobs)
    if (const JobRecord* job = parts->state.FindJob(reported.job))
      parts->bad_samples.Describe(*job->info, reported.samples);
  for (const CountedBadSamples& counted : report.plans)
    CountBadSamples(counted, parts, deferred);
}

absl::Status Replaced(const WorkerSession& session) {
  return Aborted(
      "worker {} was registered again by another process: give each worker a "
      "--name of its own",
      session.name);
}

}  // namespace

absl::StatusOr<SessionId> Coordinator::RegisterWorker(
    const WorkerRegistration& registration, Now now, Wake wake) {
  RETURN_IF_ERROR(CheckText("a worker's name", registration.name));
  RETURN_IF_ERROR(CheckText("a worker's address", registration.address));
  RETURN_IF_ERROR(CheckPoolName(registration.pool));
  if (registration.threads == 0)
    return InvalidArgument("worker {}: threads 0: want at least 1",
                           registration.name);
  const uint64_t sequence = store_->sequence();
  DeferredActions deferred;
  MutexLock lock(&mu_);
  Parts& parts = *parts_;
  const std::string& name = registration.name;
  if (parts.shut_down) return Stopping();
  RETURN_IF_ERROR(
      MayRegister(registration, parts.membership.Find(name), parts, &deferred));
  parts.Seen(now, &deferred);
  const SessionId id = parts.sessions.NewId();
  const SessionId replaced = parts.membership.Register(
      registration, id, parts.state.drained().contains(name), now);
  auto& sessions = parts.sessions.workers();
  if (const auto old = sessions.find(replaced); old != sessions.end()) {
    parts.announcer.Tell(
        {"worker.replaced",
         "warn",
         {"worker/" + name},
         fmt::format("worker {} registered again while its session was open: "
                     "the older one ends",
                     name),
         fmt::format("session={}", replaced)},
        &deferred);
    old->second.replaced = true;
    deferred.Add(old->second.wake);
  }
  kept_->Forget(name);
  parts.workers_came = true;
  statistics_.BeginWorker(name);
  WorkerSession& session = sessions[id];
  session.name = name;
  session.wake = std::move(wake);
  if (store_->durable() && registration.highest_sequence_seen > sequence)
    deferred.Add([name, seen = registration.highest_sequence_seen, sequence] {
      LOG_ERROR("state.regressed worker={} has_seen={} sequence={}", name, seen,
                sequence);
    });
  parts.announcer.Tell(
      {"worker.joined",
       "info",
       {"worker/" + name},
       fmt::format("worker {} joined from {}, with {}, version {}", name,
                   registration.host, Counted(registration.threads, "thread"),
                   registration.version),
       fmt::format("address={} threads={} session={}", registration.address,
                   registration.threads, id)},
      &deferred);
  // Listings by the worker's previous process are lost.
  parts.datasets.LoseWorker(name, now, &deferred);
  parts.tables.ProlongPublishDelay(now);
  parts.tables.MembersChanged(now, &deferred);
  parts.datasets.AssignListings(now, &deferred);
  deferred.Add(session.wake);
  return id;
}

absl::Status Coordinator::Heartbeat(SessionId id, WorkerReport report,
                                    const BadSampleReport& bad_samples, Now now,
                                    StorageFailures failures) {
  DeferredActions deferred;
  MutexLock lock(&mu_);
  Parts& parts = *parts_;
  const auto it = parts.sessions.workers().find(id);
  if (it == parts.sessions.workers().end())
    return NotFound("no session {}", id);
  WorkerSession& session = it->second;
  if (session.replaced) return Replaced(session);
  Membership::Worker* worker = parts.membership.Find(id);
  if (worker == nullptr) return NotFound("no session {}", id);
  NoteBadSamples(bad_samples, &parts, &deferred);
  if (parts.settling.Answered(id, &session, bad_samples.answers))
    deferred.Add(wake_);
  parts.announcer.Seen(now);
  if (report.stats != nullptr) {
    deferred.Add(
        [this, name = session.name, stats = report.stats, mono = now.mono] {
          statistics_.NoteWorker(name, *stats, mono);
        });
    parts.tables.NoteKept(session.name, *report.stats, now, &deferred);
  }
  parts.datasets.NoteUnderWay(report.listings);
  const bool was_lost = worker->lost;
  const bool was_failing = !worker->failures.empty();
  if (!parts.membership.Heartbeat(worker, std::move(report),
                                  std::move(failures), now))
    return absl::OkStatus();
  TellBeat(*worker, was_lost, was_failing, &parts, &deferred);
  if (was_lost) parts.datasets.AssignListings(now, &deferred);
  parts.tables.MembersChanged(now, &deferred);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<WorkerMessage>> Coordinator::NextForWorker(
    SessionId id) {
  MutexLock lock(&mu_);
  Parts& parts = *parts_;
  const auto it = parts.sessions.workers().find(id);
  if (it == parts.sessions.workers().end())
    return NotFound("no session {}", id);
  WorkerSession& session = it->second;
  if (parts.shut_down) return Stopping();
  if (session.replaced) return Replaced(session);
  const auto& access = parts.tokens.list();
  const bool told =
      std::exchange(session.access_version, access->version) == access->version;
  if (!std::exchange(session.welcomed, true))
    return WorkerMessage(
        Welcome{config_.heartbeat_interval, store_->sequence(), access});
  if (!told) return WorkerMessage(access);
  if (!session.log_level.empty())
    return WorkerMessage(
        LogLevelDirective{std::exchange(session.log_level, "")});
  if (!session.directives.empty()) {
    WorkerMessage message(std::move(session.directives.front()));
    session.directives.pop_front();
    return message;
  }
  if (const uint64_t number = parts.settling.Take(&session); number != 0)
    return WorkerMessage(ReportNow{number});
  std::optional<OwnedShards> owned = parts.tables.NextOwned(&session);
  if (!owned) return std::nullopt;
  return WorkerMessage(*std::move(owned));
}

void Coordinator::CloseWorker(SessionId id, bool left, Now now) {
  DeferredActions deferred;
  MutexLock lock(&mu_);
  Parts& parts = *parts_;
  const auto it = parts.sessions.workers().find(id);
  if (it == parts.sessions.workers().end()) return;
  const std::string name = it->second.name;
  const bool replaced = it->second.replaced;
  parts.sessions.workers().erase(it);
  if (replaced) return;
  kept_->Forget(name);
  parts.announcer.Seen(now);
  parts.announcer.Tell(
      {left ? "worker.left" : "worker.disconnected",
       left ? "info" : "warn",
       {"worker/" + name},
       left ? fmt::format("worker {} left in good order", name)
            : fmt::format("the connection to worker {} broke", name),
       fmt::format("session={}", id)},
      &deferred);
  const bool changed = parts.membership.Disconnect(id, left, now);
  // A listing cannot be answered on a stream that has ended.
  parts.datasets.LoseWorker(name, now, &deferred);
  parts.datasets.AssignListings(now, &deferred);
  if (changed) parts.tables.MembersChanged(now, &deferred);
  deferred.Add(wake_);
}

void Coordinator::DrainWorker(const std::string& name, bool drain, Now now,
                              Done done) {
  DeferredActions deferred;
  MutexLock lock(&mu_);
  Parts* const parts = parts_.get();
  const auto decide = [=]() -> absl::StatusOr<std::optional<Event>> {
    const bool drained = parts->state.drained().contains(name);
    if (parts->membership.Find(name) == nullptr && !drained)
      return NotFound("no worker \"{}\"", name);
    if (drained == drain) return std::nullopt;
    if (drain) return Event{{}, WorkerDrained{name}, {}};
    return Event{{}, WorkerUndrained{name}, {}};
  };
  const auto changed = [=](DeferredActions* actions) {
    if (!parts->membership.SetDrained(name, drain)) return;
    parts->announcer.Tell(
        {drain ? "worker.drained" : "worker.undrained",
         "info",
         {"worker/" + name},
         drain
             ? fmt::format("worker {} drains: it owns no shard any more", name)
             : fmt::format("worker {} may own shards again", name)},
        actions);
    parts->tables.MembersChanged(now, actions);
    parts->datasets.AssignListings(now, actions);
  };
  parts->transactions.Enqueue(
      std::make_unique<PlainTransaction>(decide, changed, std::move(done)),
      &deferred);
}

absl::Status Coordinator::SetWorkerLogLevel(std::string_view name,
                                            std::string_view level) {
  DeferredActions deferred;
  MutexLock lock(&mu_);
  if (parts_->membership.Find(name) == nullptr)
    return NotFound("no worker \"{}\"", name);
  WorkerSession* const session = parts_->sessions.OfWorker(name);
  if (session == nullptr)
    return Unavailable("worker {} is not connected", name);
  session->log_level = std::string(level);
  deferred.Add(session->wake);
  return absl::OkStatus();
}

uint64_t Coordinator::member_visits() const {
  MutexLock lock(&mu_);
  return parts_->membership.visits();
}

}  // namespace leat::server
