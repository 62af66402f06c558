// SPDX-License-Identifier: Apache-2.0
//
// Sessions of workers and consumers.
#include <algorithm>
#include <cctype>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "server/coordinator.h"
#include "server/coordinator_internal.h"

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
  if (registration.threads == 0)
    return InvalidArgument("worker {}: threads 0: want at least 1",
                           registration.name);
  Effects effects;
  MutexLock lock(&mu_);
  if (shut_down_) return Stopping();
  if (membership_.Find(registration.name) == nullptr && membership_.full())
    return ResourceExhausted("too many workers: {}",
                             membership_.workers().size());
  const SessionId id = next_id_++;
  const SessionId replaced = membership_.Register(
      registration, id, state_.drained().contains(registration.name), now);
  if (const auto old = worker_sessions_.find(replaced);
      old != worker_sessions_.end()) {
    LOG_WARN("worker.replaced worker={} session={}", registration.name,
             replaced);
    old->second.replaced = true;
    effects.Add(old->second.wake);
  }
  WorkerSession& session = worker_sessions_[id];
  session.name = registration.name;
  session.wake = std::move(wake);
  for (const TableKey& key : assignments_.keys())
    if (assignments_.ForWorkers(key.dataset_id) != nullptr)
      session.datasets.insert(key.dataset_id);
  if (store_->durable() &&
      registration.highest_sequence_seen > store_->sequence())
    LOG_ERROR("state.regressed worker={} has_seen={} sequence={}",
              registration.name, registration.highest_sequence_seen,
              store_->sequence());
  LOG_INFO("worker.joined worker={} address={} threads={} session={}",
           registration.name, registration.address, registration.threads, id);
  // What the worker's former process was listing is lost.
  GiveUp(indexing_.LoseWorker(registration.name), now, &effects);
  MembersChanged(now, &effects);
  AssignListings(now, &effects);
  effects.Add(session.wake);
  return id;
}

absl::Status Coordinator::Heartbeat(
    SessionId session, const WorkerStats& stats,
    const std::vector<JobBadSamples>& bad_samples, Now now) {
  Effects effects;
  MutexLock lock(&mu_);
  const auto it = worker_sessions_.find(session);
  if (it == worker_sessions_.end()) return NotFound("no session {}", session);
  if (it->second.replaced)
    return Aborted("worker {} was registered again by another process",
                   it->second.name);
  Membership::Worker* worker = membership_.Find(session);
  if (worker == nullptr) return NotFound("no session {}", session);
  NoteBadSamples(bad_samples);
  const bool was_lost = worker->lost;
  if (!membership_.Heartbeat(worker, stats, now)) return absl::OkStatus();
  if (was_lost) {
    LOG_INFO("worker.back worker={}", it->second.name);
    AssignListings(now, &effects);
  } else {
    LOG_INFO("worker.weight worker={} weight={:.3f}", it->second.name,
             worker->weight);
  }
  MembersChanged(now, &effects);
  return absl::OkStatus();
}

void Coordinator::NoteBadSamples(
    const std::vector<JobBadSamples>& bad_samples) {
  for (const JobBadSamples& reported : bad_samples) {
    if (state_.FindJob(reported.job) == nullptr) continue;
    BadSamples& noted = bad_samples_[reported.job];
    for (const BadSample& sample : reported.samples) {
      noted.total += sample.count;
      const auto it = noted.first.find(sample.sample);
      if (it != noted.first.end())
        it->second.count += sample.count;
      else if (noted.first.size() < config_.max_bad_samples)
        noted.first[sample.sample] = sample;
    }
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
  if (!std::exchange(session.welcomed, true))
    return WorkerMessage(
        Welcome{config_.heartbeat_interval, store_->sequence()});
  if (!session.log_level.empty())
    return WorkerMessage(
        LogLevelDirective{std::exchange(session.log_level, "")});
  if (!session.directives.empty()) {
    WorkerMessage message(std::move(session.directives.front()));
    session.directives.pop_front();
    return message;
  }
  while (!session.datasets.empty()) {
    const auto first = session.datasets.begin();
    std::shared_ptr<const Assignment> assignment =
        assignments_.ForWorkers(*first);
    session.datasets.erase(first);
    if (assignment != nullptr) return WorkerMessage(std::move(assignment));
  }
  return std::nullopt;
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
  LOG_INFO("worker.{} worker={} session={}", left ? "left" : "disconnected",
           name, session);
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
      LOG_INFO("worker.{} worker={}", drain ? "drained" : "undrained", name);
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
  const SessionId id = next_id_++;
  Consumer& consumer = consumers_[id];
  consumer.opening = opening;
  consumer.job = job->info->spec.name;
  consumer.key = {job->info->dataset.id, job->info->spec.decoder_class};
  consumer.wake = std::move(wake);
  consumer.opened_at = consumer.last_report_at = now.wall;
  consumer.stats.job = consumer.job;
  consumer.stats.host = opening.host;
  consumer.stats.pid = opening.pid;
  AddTable(*job->info);
  // The first view is never an old one.
  if (assignments_.Get(consumer.key) == nullptr || update_at_)
    UpdateAssignments(&effects);
  LOG_INFO("consumer.opened consumer={} job={} host={} pid={}",
           opening.consumer, consumer.job, opening.host, opening.pid);
  effects.Add(consumer.wake);
  return id;
}

absl::Status Coordinator::ReportConsumer(SessionId session,
                                         const ConsumerStats& stats, Now now) {
  MutexLock lock(&mu_);
  const auto it = consumers_.find(session);
  if (it == consumers_.end()) return NotFound("no session {}", session);
  Consumer& consumer = it->second;
  consumer.stats = stats;
  consumer.stats.job = consumer.job;
  consumer.last_report_at = now.wall;
  if (stats.stall_fraction < config_.stall_fraction)
    consumer.stalled_since.reset();
  else if (!consumer.stalled_since)
    consumer.stalled_since = now.mono;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Assignment>> Coordinator::NextForConsumer(
    SessionId session) {
  MutexLock lock(&mu_);
  if (shut_down_) return Stopping();
  const auto it = consumers_.find(session);
  if (it == consumers_.end()) return NotFound("no session {}", session);
  if (!it->second.pending) return nullptr;
  it->second.pending = false;
  return assignments_.Get(it->second.key);
}

void Coordinator::CloseConsumer(SessionId session) {
  MutexLock lock(&mu_);
  const auto it = consumers_.find(session);
  if (it == consumers_.end()) return;
  LOG_INFO("consumer.closed consumer={} job={}", it->second.opening.consumer,
           it->second.job);
  consumers_.erase(it);
  RemoveUnusedTables();
}

std::shared_ptr<const Assignment> Coordinator::AssignmentOf(
    const std::string& dataset_id, DecoderClass decoder_class) const {
  MutexLock lock(&mu_);
  return assignments_.Get({dataset_id, decoder_class});
}

}  // namespace leat::server
