// SPDX-License-Identifier: Apache-2.0
//
// Life cycle, time, tables and durable writes. Jobs are in jobs.cc, what they
// are decoded with in decoders.cc, indexes in indexes.cc and blocks.cc, what
// nobody uses any more in expiry.cc, access tokens in access.cc, pools in
// pools.cc, sessions in sessions.cc, views in views.cc, events and findings in
// events.cc.
//
// A durable write:
//
//   Enqueue ─► queued ── RunWrite ─► decide ─┬─ an error, or nothing ─► finish
//      │                                     └─ event ─► Append (no lock)
//      └─ full, stopping ─► finish(error)                  ├─ error ─► finish
//                                                          └─ OK ─► Apply,
//                                                                   finish(OK)
//
// A table: MembersChanged sets `update_at_`; Tick at that time makes all tables
// due, unless they are held; RunTables computes each without the lock and
// publishes it; Announce marks its consumers, and RunWakes wakes them.
#include "server/coordinator/coordinator.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "server/coordinator/internal.h"

namespace leat::server {
namespace {

constexpr size_t kMaxClusterName = 256;
constexpr size_t kWakesAtOnce = 64;
constexpr uint64_t kMinIndexBlockBytes = 256;

}  // namespace

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
  if (job_ttl < Duration(0))
    return InvalidArgument("job-ttl: {} ms: want 0 (never) or more",
                           ms(job_ttl));
  if (index_block_bytes < kMinIndexBlockBytes ||
      index_block_bytes > kMaxIndexBlockBytes)
    return InvalidArgument("index-block-bytes {}: want {} to {}",
                           index_block_bytes, kMinIndexBlockBytes,
                           kMaxIndexBlockBytes);
  if (cluster.empty() || cluster.size() > kMaxClusterName)
    return InvalidArgument("cluster: a name of {} bytes: want 1 to {}",
                           cluster.size(), kMaxClusterName);
  return absl::OkStatus();
}

Coordinator::Coordinator(const CoordinatorConfig& config, Store* store,
                         uint64_t instance, Wake wake)
    : config_(config),
      store_(store),
      instance_(instance),
      wake_(std::move(wake)),
      figures_(config.history),
      events_(config.events, instance),
      membership_(config.membership),
      // Numbers of an earlier start mean nothing now.
      indexing_(config.indexing, (instance << 32) | 1),
      bad_samples_(config.max_bad_samples),
      access_(std::make_shared<AccessTokens>()),
      finding_watch_(config.finding_gone_after) {}

Coordinator::~Coordinator() = default;

absl::Status Coordinator::Recover() {
  Effects effects;
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(store_->Replay([this](const Event& event) {
    mu_.AssertHeld();
    state_.Replay(event);
    return absl::OkStatus();
  }));
  const absl::Status compacted = store_->Compact(state_.Events());
  for (const auto& [name, job] : state_.jobs()) {
    UseTable(*job.info, &effects);
    if (!state_.DecodersOf(job.info->plan_hash))
      loaded_unsettled_.insert(job.info->plan_hash);
  }
  assignments_.ForgetNew();
  PublishAccess({MonotonicTime::min(), WallTime::min()}, &effects);
  recovered_jobs_ = !state_.jobs().empty();
  effects.Add([this, compacted, datasets = state_.datasets().size(),
               jobs = state_.jobs().size(),
               set_aside = state_.set_aside().size()] {
    if (!compacted.ok()) LOG_WARN("state.not_compacted {}", Message(compacted));
    LOG_INFO(
        "state.loaded store=\"{}\" sequence={} datasets={} jobs={} "
        "set_aside={}",
        store_->description(), store_->sequence(), datasets, jobs, set_aside);
  });
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
    Seen(now);
    write = std::move(writes_.front());
    writes_.pop_front();
    absl::StatusOr<std::optional<Event>> decided = write.decide(&effects);
    if (!decided.ok() || !decided->has_value()) {
      write.finish(decided.status(), &effects);
      return true;
    }
    event = **std::move(decided);
    event.at = now.wall;
    // The store must not be told what cannot be applied.
    if (absl::Status fits = state_.Check(event); !fits.ok()) {
      write.finish(fits, &effects);
      return true;
    }
    writing_ = true;
  }
  absl::Status written = store_->Append(event);
  Effects effects;
  MutexLock lock(&mu_);
  writing_ = false;
  last_write_ = written;
  if (written.ok()) {
    written = state_.Apply(event);
  } else if (absl::IsInternal(written)) {
    written = Unavailable(
        "the coordinator cannot keep its state, and ends: {}; ask again when "
        "it is back",
        Message(written));
  } else {
    effects.Add(
        [written] { LOG_ERROR("state.not_written {}", Message(written)); });
  }
  write.finish(written, &effects);
  return true;
}

absl::Status Coordinator::StoreFailure() const {
  MutexLock lock(&mu_);
  return absl::IsInternal(last_write_) ? last_write_ : absl::OkStatus();
}

bool Coordinator::RunWakes() {
  std::vector<Wake> wakes;
  {
    MutexLock lock(&mu_);
    if (to_wake_.empty()) return false;
    const auto take = [&](WokenSession* session) {
      session->waking = false;
      wakes.push_back(session->wake);
    };
    for (; !to_wake_.empty() && wakes.size() < kWakesAtOnce;
         to_wake_.pop_front()) {
      const SessionId id = to_wake_.front();
      if (const auto worker = worker_sessions_.find(id);
          worker != worker_sessions_.end())
        take(&worker->second);
      else if (Consumer* const consumer = consumers_.Find(id))
        take(consumer);
    }
  }
  for (const Wake& wake : wakes)
    if (wake) wake();
  return true;
}

void Coordinator::WakeLater(SessionId id, WokenSession* session) {
  if (!std::exchange(session->waking, true)) to_wake_.push_back(id);
}

// The first moment that this process knows of. Tables of the process before are
// kept by those who have them until the workers are back.
void Coordinator::NoteStart(Now now) {
  Seen(now);
  if (started_at_) return;
  started_at_ = now.mono;
  maintain_at_ = now.mono;
  if (!state_.pools().empty())
    pools_at_ = pools_held_until_ = now.mono + config_.pool_hold;
  Happened("coordinator.started", "info",
           {fmt::format("coordinator/{}", config_.cluster)},
           fmt::format("the coordinator started with {} datasets and {} jobs",
                       state_.datasets().size(), state_.jobs().size()),
           /*effects=*/nullptr);
  if (recovered_jobs_) tables_held_until_ = MonotonicTime::max();
}

// A worker has registered: others may follow.
void Coordinator::ProlongHold(Now now) {
  if (!tables_held_until_) return;
  if (*tables_held_until_ == MonotonicTime::max()) first_worker_at_ = now.mono;
  const MembershipConfig& members = config_.membership;
  tables_held_until_ =
      std::min(now.mono + members.lost_after,
               first_worker_at_ + members.max_holds * members.lost_after);
}

void Coordinator::ExpireMembers(Now now, Effects* effects) {
  const Membership::Expired expired = membership_.Expire(now);
  if (expired.held > 0)
    effects->Add([held = expired.held] {
      LOG_WARN(
          "workers.silent workers={} action=\"wait: so many at once are "
          "rather unreachable than lost\"",
          held);
    });
  if (expired.held > 0)
    Happened("workers.silent", "warn", {},
             fmt::format("{} workers fell silent at once; they keep their "
                         "shards for a while",
                         expired.held),
             effects);
  for (const std::string& name : expired.lost) {
    effects->Add([name] { LOG_WARN("worker.lost worker={}", name); });
    Happened("worker.lost", "warn", {"worker/" + name},
             fmt::format(
                 "worker {} sends no heartbeat; its shards go to others", name),
             effects);
    GiveUp(indexing_.LoseWorker(name), now, effects);
  }
  if (!expired.lost.empty()) MembersChanged(now, effects);
}

void Coordinator::Tick(Now now) {
  DecidePools(now);
  Effects effects;
  MutexLock lock(&mu_);
  NoteStart(now);
  ExpireMembers(now, &effects);
  GiveUp(indexing_.Expire(now), now, &effects);
  AssignListings(now, &effects);
  AnswerLate(now, &effects);
  Maintain(now, &effects);
  CollectBlocks(now, &effects);
  if (tables_held_until_ && now.mono >= *tables_held_until_)
    tables_held_until_.reset();
  if (!tables_held_until_) loaded_unsettled_.clear();
  if (update_at_ && now.mono >= *update_at_ && !tables_held_until_) {
    update_at_.reset();
    all_tables_due_ = true;
    effects.Add(wake_);
    settle_at_ = MonotonicTime::min();
  }
  if (settle_at_ && now.mono >= *settle_at_) SettleDecoders(now, &effects);
  if (now.mono >= access_due_) PublishAccess(now, &effects);
  if (kept_->Release(now.mono)) effects.Add(wake_);
}

MonotonicTime Coordinator::DeadlineLocked() const {
  if (!started_at_) return MonotonicTime::min();
  MonotonicTime next =
      std::min(membership_.NextDeadline(), indexing_.NextDeadline());
  if (update_at_)
    next = std::min(next, tables_held_until_
                              ? std::max(*update_at_, *tables_held_until_)
                              : *update_at_);
  if (settle_at_) next = std::min(next, *settle_at_);
  next = std::min({next, access_due_, kept_->due()});
  next = std::min(next, pools_at_);
  next = std::min(next, creations_.NextDeadline());
  if (config_.job_ttl > Duration(0)) next = std::min(next, maintain_at_);
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
  while (const std::optional<uint64_t> first = creations_.First())
    Answer(*first, Unavailable("the coordinator is stopping"), &effects);
  for (Write& write : std::exchange(writes_, {}))
    write.finish(Unavailable("the coordinator is stopping"), &effects);
  for (auto& done : refreshes_.TakeAll())
    effects.Add([done = std::move(done)] {
      done(Unavailable("the coordinator is stopping"));
    });
  for (auto& [id, session] : worker_sessions_) WakeLater(id, &session);
  for (const auto& [id, consumer] : consumers_.all())
    WakeLater(id, consumers_.Find(id));
  for (const auto& [id, watcher] : pool_watchers_) effects.Add(watcher.wake);
  effects.Add(wake_);
  effects.Add([this] { events_.Stop(); });
}

void Coordinator::MembersChanged(Now now, Effects* effects) {
  if (update_at_) return;
  update_at_ = now.mono + config_.assignment_delay;
  effects->Add(wake_);
}

void Coordinator::UseTable(const JobInfo& job, Effects* effects) {
  assignments_.Use(KeyOf(job), job.dataset.fingerprint,
                   job.dataset.shards.num_shards());
  if (assignments_.has_new()) effects->Add(wake_);
}

void Coordinator::ReleaseTable(const TableKey& key, Effects* effects) {
  const std::shared_ptr<const Assignment> gone = assignments_.Release(key);
  if (gone == nullptr || !assignments_.Uses(key.dataset_id)) return;
  // Its owners own what the dataset's other tables say.
  std::vector<std::string> workers;
  for (const WorkerRef& worker : gone->workers) workers.push_back(worker.name);
  Announce(key, workers);
  effects->Add(wake_);
}

bool Coordinator::RunTables() {
  Effects effects;
  MutexLock computing(&tables_mu_);
  const bool told = TellShares();
  std::vector<std::shared_ptr<TableBuilder>> due;
  std::vector<Member> members;
  std::set<std::string> published;  // datasets
  {
    MutexLock lock(&mu_);
    due = assignments_.Due(std::exchange(all_tables_due_, false));
    if (due.empty()) return told;
    members = MembersOf(membership_);
  }
  for (const std::shared_ptr<TableBuilder>& builder : due) {
    const TableBuilder::Built built =
        builder->Build(members, instance_, &table_version_);
    MutexLock lock(&mu_);
    if (!assignments_.Publish(*builder, built) || built.table == nullptr)
      continue;
    Announce(builder->key(), built.changed);
    published.insert(builder->key().dataset_id);
    effects.Add(wake_);
  }
  MutexLock lock(&mu_);
  TablesHappened(published, members.size(), &effects);
  return true;
}

// To all consumers of the table, and to `workers`.
void Coordinator::Announce(const TableKey& key,
                           const std::vector<std::string>& workers) {
  for (const SessionId id : consumers_.OfTable(key)) {
    Consumer* const consumer = consumers_.Find(id);
    consumer->pending = true;
    WakeLater(id, consumer);
  }
  TellOwned(key.dataset_id, workers);
}

void Coordinator::TellOwned(const std::string& dataset,
                            const std::vector<std::string>& workers) {
  for (const std::string& name : workers) {
    const Membership::Worker* worker = membership_.Find(name);
    if (worker == nullptr) continue;
    const auto it = worker_sessions_.find(worker->session);
    if (it == worker_sessions_.end()) continue;
    it->second.datasets.insert(dataset);
    WakeLater(it->first, &it->second);
  }
}

}  // namespace leat::server
