// SPDX-License-Identifier: Apache-2.0
//
// Life cycle, time and durable writes. Jobs and indexes are in
// coordinator_jobs.cc, sessions in coordinator_sessions.cc, views and findings
// in coordinator_views.cc.
#include "server/coordinator.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "server/coordinator_internal.h"

namespace leat::server {

absl::Status CoordinatorConfig::Validate() const {
  const auto ms = [](Duration duration) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(duration)
        .count();
  };
  if (heartbeat_interval < std::chrono::milliseconds(10))
    return InvalidArgument("heartbeat-interval-ms {}: want at least 10",
                           ms(heartbeat_interval));
  if (membership.lost_after < 2 * heartbeat_interval)
    return InvalidArgument(
        "lost-after-ms {}: want at least twice heartbeat-interval-ms ({})",
        ms(membership.lost_after), ms(heartbeat_interval));
  return absl::OkStatus();
}

Coordinator::Coordinator(const CoordinatorConfig& config, Store* store,
                         uint64_t instance, Wake wake)
    : config_(config),
      store_(store),
      wake_(std::move(wake)),
      membership_(config.membership),
      // Numbers of an earlier start mean nothing now.
      indexing_(config.indexing, (instance << 32) | 1),
      assignments_(instance) {}

Coordinator::~Coordinator() = default;

absl::Status Coordinator::Recover() {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(store_->Replay([this](const Event& event) {
    mu_.AssertHeld();
    return state_.Apply(event);
  }));
  if (absl::Status compacted = store_->Compact(state_.Events());
      !compacted.ok())
    LOG_WARN("state.not_compacted {}", Message(compacted));
  for (const auto& [name, job] : state_.jobs()) AddTable(*job.info);
  LOG_INFO("state.loaded store=\"{}\" sequence={} datasets={} jobs={}",
           store_->description(), store_->sequence(), state_.datasets().size(),
           state_.jobs().size());
  return absl::OkStatus();
}

void Coordinator::Enqueue(Write write, Effects* effects) {
  if (shut_down_ || writes_.size() >= config_.max_writes) {
    write.finish(shut_down_ ? Unavailable("the coordinator is stopping")
                            : ResourceExhausted("{} changes wait to be "
                                                "written, the limit",
                                                writes_.size()),
                 effects);
    return;
  }
  writes_.push_back(std::move(write));
  effects->Add(wake_);
}

bool Coordinator::RunWrite(Now now) {
  Write write;
  Event event;
  {
    Effects effects;
    MutexLock lock(&mu_);
    if (writing_ || writes_.empty()) return false;
    write = std::move(writes_.front());
    writes_.pop_front();
    absl::StatusOr<std::optional<Event>> decided = write.decide(&effects);
    if (!decided.ok() || !decided->has_value()) {
      write.finish(decided.status(), &effects);
      return true;
    }
    event = **std::move(decided);
    event.at = now.wall;
    writing_ = true;
  }
  absl::Status written = store_->Append(event, write.index);
  Effects effects;
  MutexLock lock(&mu_);
  writing_ = false;
  last_write_ = written;
  if (written.ok()) {
    written = state_.Apply(event);
    if (!written.ok())
      LOG_ERROR("state.not_applied {}: a restart reads it again",
                Message(written));
  } else {
    LOG_ERROR("state.not_written {}", Message(written));
  }
  write.finish(written, &effects);
  return true;
}

void Coordinator::Tick(Now now) {
  Effects effects;
  MutexLock lock(&mu_);
  bool changed = false;
  for (const std::string& name : membership_.Expire(now)) {
    LOG_WARN("worker.lost worker={}", name);
    changed = true;
    GiveUp(indexing_.LoseWorker(name), now, &effects);
  }
  GiveUp(indexing_.Expire(now), now, &effects);
  if (changed) MembersChanged(now, &effects);
  AssignListings(now, &effects);
  ExpireWaits(now, &effects);
  if (update_at_ && now.mono >= *update_at_) UpdateAssignments(&effects);
}

MonotonicTime Coordinator::DeadlineLocked() const {
  MonotonicTime next =
      std::min(membership_.NextDeadline(), indexing_.NextDeadline());
  if (update_at_) next = std::min(next, *update_at_);
  for (const auto& [id, wait] : waits_)
    if (!wait.writing) next = std::min(next, wait.deadline);
  return next;
}

MonotonicTime Coordinator::NextDeadline() const {
  MutexLock lock(&mu_);
  return DeadlineLocked();
}

void Coordinator::Shutdown() {
  Effects effects;
  MutexLock lock(&mu_);
  shut_down_ = true;
  while (!waits_.empty())
    FinishWait(waits_.begin()->first,
               Unavailable("the coordinator is stopping"), &effects);
  for (Write& write : std::exchange(writes_, {}))
    write.finish(Unavailable("the coordinator is stopping"), &effects);
  for (const auto& [id, session] : worker_sessions_) effects.Add(session.wake);
  for (const auto& [id, consumer] : consumers_) effects.Add(consumer.wake);
}

void Coordinator::MembersChanged(Now now, Effects* effects) {
  if (update_at_) return;
  update_at_ = now.mono + config_.assignment_delay;
  effects->Add(wake_);
}

void Coordinator::AddTable(const JobInfo& job) {
  assignments_.Add({job.dataset.id, job.spec.decoder_class},
                   job.dataset.shards.num_shards());
}

void Coordinator::RemoveUnusedTables() {
  std::set<TableKey> used;
  for (const auto& [name, job] : state_.jobs())
    used.insert({job.info->dataset.id, job.info->spec.decoder_class});
  for (const auto& [id, consumer] : consumers_) used.insert(consumer.key);
  for (const TableKey& key : assignments_.keys())
    if (!used.contains(key)) assignments_.Remove(key);
}

void Coordinator::UpdateAssignments(Effects* effects) {
  update_at_.reset();
  for (const TableKey& key : assignments_.Update(membership_))
    Announce(key, effects);
}

// To all that use the table, and to all workers.
void Coordinator::Announce(const TableKey& key, Effects* effects) {
  for (auto& [id, consumer] : consumers_) {
    if (consumer.key != key) continue;
    consumer.pending = true;
    effects->Add(consumer.wake);
  }
  if (assignments_.ForWorkers(key.dataset_id) != assignments_.Get(key)) return;
  for (auto& [id, session] : worker_sessions_) {
    session.datasets.insert(key.dataset_id);
    effects->Add(session.wake);
  }
}

}  // namespace leat::server
