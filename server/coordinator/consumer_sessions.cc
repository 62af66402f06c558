// SPDX-License-Identifier: Apache-2.0
//
// Sessions of consumers.
//
//   OpenConsumer ─► the job's failure, if it is given up ─► its newest table,
//      and again whenever it is published; older ones in between are left out
//
// Sessions are pulled, like those of workers (worker_sessions.cc).
#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/log_text.h"
#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/parts.h"

namespace leat::server {
namespace {

// Announces workers that the consumer cannot reach and had not reported.
void NoteUnreached(const Consumer& consumer,
                   std::vector<UnreachedWorker> workers, Now now, Parts* parts,
                   DeferredActions* deferred) {
  const std::string& name = consumer.opening.consumer;
  const std::string& host = consumer.opening.host;
  for (const UnreachedWorker& each : parts->unreached.Say(
           name, {consumer.job, host, std::move(workers), now.mono}))
    parts->announcer.Tell(
        {"consumer.cannot_reach",
         "warn",
         {"consumer/" + name, "job/" + consumer.job, "worker/" + each.worker},
         fmt::format("consumer {} on {} cannot reach worker {}: {}", name, host,
                     each.worker, each.why),
         fmt::format("reason=\"{}\"", EscapedQuotes(each.why))},
        deferred);
}

// Returns the consumer's job; nullptr: it was deleted, also if another job has
// its name now.
const JobRecord* JobOf(const Consumer& consumer, const State& state) {
  const JobRecord* const job = state.FindJob(consumer.job);
  return job != nullptr && job->info->plan_hash == consumer.opening.plan_hash
             ? job
             : nullptr;
}

// Remembers where the consumer ended, unless it was only a look, or had not
// told.
void NotePosition(const Consumer& consumer, Parts* parts) {
  if (!consumer.reported || consumer.opening.look ||
      JobOf(consumer, parts->state) == nullptr)
    return;
  parts->positions[consumer.job] = {.epoch = consumer.report.epoch,
                                    .step = consumer.report.step,
                                    .at = consumer.last_report_at};
}

std::string EndOf(const Consumer& consumer) {
  const std::string who = fmt::format("consumer {} of job {}",
                                      consumer.opening.consumer, consumer.job);
  if (!consumer.reported)
    return fmt::format("{} ended before it had told its position", who);
  return fmt::format("{} ended at epoch {}, step {}", who,
                     consumer.report.epoch, consumer.report.step);
}

}  // namespace

absl::StatusOr<SessionId> Coordinator::OpenConsumer(
    const ConsumerOpening& opening, Now now, Wake wake) {
  RETURN_IF_ERROR(CheckText("a consumer's name", opening.consumer));
  DeferredActions deferred;
  MutexLock lock(&mu_);
  Parts& parts = *parts_;
  ConsumerTable& consumers = parts.sessions.consumers();
  if (parts.shut_down) return Stopping();
  const JobRecord* job = parts.state.FindJob(opening.plan_hash);
  if (job == nullptr)
    return NotFound("no job with plan hash {}", ShortHex(opening.plan_hash));
  if (consumers.size() >= config_.max_consumers)
    return ResourceExhausted("too many consumers: {}", consumers.size());
  parts.Seen(now, &deferred);
  if (const JobRecord* named = parts.state.FindJob(opening.job);
      named != nullptr && named->info->plan_hash == opening.plan_hash)
    job = named;
  statistics_.BeginConsumer(opening.consumer);
  const SessionId id = parts.sessions.NewId();
  Consumer opened;
  opened.opening = opening;
  opened.job = job->info->spec.name;
  opened.keys = KeysOf(parts.state, *job->info);
  opened.wake = std::move(wake);
  opened.opened_at = opened.last_report_at = now.wall;
  const Consumer& consumer = consumers.Add(id, std::move(opened));
  for (const std::string& name : parts.state.JobsWith(opening.plan_hash))
    parts.expiry.JobUsed(name, now);
  parts.tables.Use(*job->info, &deferred);
  parts.announcer.Tell(
      {"consumer.opened",
       "info",
       {"consumer/" + opening.consumer, "job/" + consumer.job},
       fmt::format("consumer {} on {} pulls batches of job {}",
                   opening.consumer, opening.host, consumer.job),
       fmt::format("host={} pid={}", opening.host, opening.pid)},
      &deferred);
  deferred.Add(consumer.wake);
  return id;
}

absl::Status Coordinator::ReportConsumer(SessionId session,
                                         ConsumerReport report, Now now) {
  DeferredActions deferred;
  MutexLock lock(&mu_);
  Parts& parts = *parts_;
  Consumer* const consumer = parts.sessions.consumers().Find(session);
  if (consumer == nullptr) return NotFound("no session {}", session);
  parts.announcer.Seen(now);
  if (report.stats != nullptr)
    deferred.Add(
        [this, name = consumer->opening.consumer, stats = report.stats,
         mono = now.mono] { statistics_.NoteConsumer(name, *stats, mono); });
  if (auto unreached = std::exchange(report.unreached, std::nullopt))
    NoteUnreached(*consumer, *std::move(unreached), now, &parts, &deferred);
  const bool stalls = report.stall_fraction >= config_.stall_fraction;
  consumer->report = std::move(report);
  consumer->reported = true;
  consumer->last_report_at = now.wall;
  if (!stalls)
    consumer->stalled_since.reset();
  else if (!consumer->stalled_since)
    consumer->stalled_since = now.mono;
  return absl::OkStatus();
}

// Returns nullptr if there is none yet: the consumer is woken when there is.
absl::StatusOr<std::shared_ptr<const Assignment>> Coordinator::NextForConsumer(
    SessionId session) {
  MutexLock lock(&mu_);
  if (parts_->shut_down) return Stopping();
  Consumer* const consumer = parts_->sessions.consumers().Find(session);
  if (consumer == nullptr) return NotFound("no session {}", session);
  // Those that are not published yet stay pending.
  for (const TableKey& key : consumer->pending)
    if (std::shared_ptr<const Assignment> table =
            parts_->tables.assignments().Get(key)) {
      consumer->pending.erase(key);
      return table;
    }
  return nullptr;
}

void Coordinator::SettleConsumer(SessionId session) {
  DeferredActions deferred;
  MutexLock lock(&mu_);
  parts_->settling.Ask(session);
  deferred.Add(wake_);
}

// `settled` is sent with the verdict on the bad samples reported until then.
Coordinator::JobNews Coordinator::NewsForConsumer(SessionId session) {
  JobNews news;
  MutexLock lock(&mu_);
  Consumer* const consumer = parts_->sessions.consumers().Find(session);
  if (consumer == nullptr) return news;
  news.settled = std::exchange(consumer->settled, false);
  const JobRecord* job = JobOf(*consumer, parts_->state);
  if (consumer->told_failure || job == nullptr) return news;
  absl::Status verdict = parts_->bad_samples.Verdict(*job->info);
  if (verdict.ok()) return news;
  consumer->told_failure = true;
  news.failure = std::move(verdict);
  return news;
}

void Coordinator::CloseConsumer(SessionId session, Now now) {
  DeferredActions deferred;
  MutexLock lock(&mu_);
  Parts& parts = *parts_;
  const std::optional<Consumer> consumer =
      parts.sessions.consumers().Remove(session);
  if (!consumer) return;
  parts.announcer.Seen(now);
  parts.settling.Leave(session);
  NotePosition(*consumer, &parts);
  parts.announcer.Tell(
      {"consumer.closed",
       "info",
       {"consumer/" + consumer->opening.consumer, "job/" + consumer->job},
       EndOf(*consumer)},
      &deferred);
  parts.tables.Release(consumer->keys, &deferred);
}

std::shared_ptr<const Assignment> Coordinator::AssignmentOf(
    const std::string& dataset_id, DecoderClass decoder_class,
    const Digest& decoders) const {
  MutexLock lock(&mu_);
  return parts_->tables.assignments().Get(
      {dataset_id, decoder_class, decoders});
}

}  // namespace leat::server
