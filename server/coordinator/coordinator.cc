// SPDX-License-Identifier: Apache-2.0
//
// Life cycle, time and transactions. Calls about jobs and listings are in
// calls.cc, blocks of indexes in blocks.cc, sessions in worker_sessions.cc and
// consumer_sessions.cc, pools in pools.cc, findings in findings.cc, lists in
// views.cc, statistics over time in verdicts.cc and history.cc.
//
// Each function takes the lock, and lets parts decide
// (server/coordinator/parts.h). transactions.h explains durable changes,
// tables.h tables.
#include "server/coordinator/coordinator.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/counted.h"
#include "core/log.h"
#include "core/status.h"
#include "server/coordinator/parts.h"

namespace leat::server {
namespace {

constexpr size_t kMaxClusterName = 256;
constexpr uint64_t kMinIndexBlockBytes = 256;
// How many datasets with new tables are announced individually.
constexpr size_t kMaxTables = 4;

void TellTables(const std::set<std::string>& datasets, size_t workers,
                Parts* parts, DeferredActions* deferred) {
  const std::string to = Counted(workers, "worker");
  if (datasets.size() > kMaxTables)
    return parts->announcer.Tell(
        {"shards.assigned",
         "info",
         {},
         fmt::format("the shards of {} datasets were given out anew, to {}",
                     datasets.size(), to)},
        deferred);
  for (const std::string& id : datasets) {
    const std::string name = parts->state.NameOf(id);
    parts->announcer.Tell(
        {"shards.assigned",
         "info",
         {"dataset/" + name},
         fmt::format("the shards of dataset {} were given out anew, to {}",
                     name, to)},
        deferred);
  }
}

void ExpireMembers(Now now, Parts* parts, DeferredActions* deferred) {
  const Membership::Expired expired = parts->membership.Expire(now);
  if (expired.held > 0)
    parts->announcer.Tell(
        {"workers.silent",
         "warn",
         {},
         fmt::format("{} workers fell silent at once; they keep their shards "
                     "for a while",
                     expired.held),
         fmt::format("workers={} action=\"wait: so many at once are rather "
                     "unreachable than lost\"",
                     expired.held)},
        deferred);
  for (const std::string& name : expired.lost) {
    parts->announcer.Tell(
        {"worker.lost",
         "warn",
         {"worker/" + name},
         fmt::format("worker {} sends no heartbeat; its shards go to others",
                     name)},
        deferred);
    parts->datasets.LoseWorker(name, now, deferred);
  }
  if (!expired.lost.empty()) parts->tables.MembersChanged(now, deferred);
}

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
      statistics_(config.history),
      events_(config.events, instance),
      kept_(std::make_shared<KeptShares>()),
      pool_decisions_(&statistics_, config.scale_down_after),
      parts_(std::make_unique<Parts>(config_, store, &events_, kept_, instance,
                                     wake_)) {}

Coordinator::~Coordinator() = default;

absl::Status Coordinator::Recover() {
  DeferredActions deferred;
  MutexLock lock(&mu_);
  Parts& parts = *parts_;
  RETURN_IF_ERROR(store_->Replay([&parts](const Event& event) {
    parts.state.Replay(event);
    return absl::OkStatus();
  }));
  const absl::Status compacted = store_->Compact(parts.state.Events());
  parts.tables.Recover(&deferred);
  parts.decoders.Recover();
  parts.tokens.Publish({MonotonicTime::min(), WallTime::min()}, &deferred);
  deferred.Add([this, compacted, datasets = parts.state.datasets().size(),
                jobs = parts.state.jobs().size(),
                set_aside = parts.state.set_aside().size()] {
    if (!compacted.ok()) LOG_WARN("state.not_compacted {}", Message(compacted));
    LOG_INFO(
        "state.loaded store=\"{}\" sequence={} datasets={} jobs={} "
        "set_aside={}",
        store_->description(), store_->sequence(), datasets, jobs, set_aside);
  });
  return absl::OkStatus();
}

void Parts::Seen(Now now, DeferredActions* deferred) {
  announcer.Seen(now);
  if (started_at) return;
  started_at = now.mono;
  expiry.Start(now);
  pools.Start(now, config.pool_decision_delay);
  announcer.Tell({"coordinator.started",
                  "info",
                  {fmt::format("coordinator/{}", config.cluster)},
                  fmt::format("the coordinator started with {} and {}",
                              Counted(state.datasets().size(), "dataset"),
                              Counted(state.jobs().size(), "job"))},
                 deferred);
  tables.Start();
}

bool Coordinator::RunTransaction(Now now) {
  std::optional<Event> event;
  {
    DeferredActions deferred;
    MutexLock lock(&mu_);
    parts_->announcer.Seen(now);
    if (!parts_->transactions.Next(now, &event, &deferred)) return false;
  }
  if (!event) return true;
  const absl::Status appended = store_->Append(*event);
  DeferredActions deferred;
  MutexLock lock(&mu_);
  parts_->transactions.End(*event, appended, &deferred);
  return true;
}

absl::Status Coordinator::StoreFailure() const {
  MutexLock lock(&mu_);
  const absl::Status& last = parts_->transactions.last();
  return absl::IsInternal(last) ? last : absl::OkStatus();
}

bool Coordinator::RunWakes() {
  std::vector<Wake> wakes;
  {
    MutexLock lock(&mu_);
    wakes = parts_->sessions.TakeWakes();
  }
  for (const Wake& wake : wakes)
    if (wake) wake();
  return !wakes.empty();
}

void Coordinator::Tick(Now now) {
  DecidePools(now);
  DeferredActions deferred;
  MutexLock lock(&mu_);
  Parts& parts = *parts_;
  parts.Seen(now, &deferred);
  ExpireMembers(now, &parts, &deferred);
  if (parts.settling.Check()) deferred.Add(wake_);
  parts.datasets.Tick(now, &deferred);
  parts.expiry.Tick(now, &deferred);
  CollectBlocks(now, &deferred);
  const bool changed = parts.tables.Tick(now, &deferred);
  parts.decoders.Tick(changed, now, &deferred);
  if (now.mono >= parts.tokens.due()) parts.tokens.Publish(now, &deferred);
}

MonotonicTime Coordinator::NextDeadline() const {
  MutexLock lock(&mu_);
  const Parts& parts = *parts_;
  if (!parts.started_at) return MonotonicTime::min();
  return std::min({parts.membership.NextDeadline(),
                   parts.datasets.NextDeadline(), parts.tables.NextDeadline(),
                   parts.decoders.NextDeadline(), parts.tokens.due(),
                   parts.pools.due(), parts.expiry.NextDeadline()});
}

void Coordinator::Shutdown() {
  DeferredActions deferred;
  MutexLock lock(&mu_);
  Parts& parts = *parts_;
  parts.shut_down = true;
  parts.datasets.Stop(&deferred);
  parts.transactions.Stop(&deferred);
  parts.sessions.WakeAllLater();
  parts.pools.WakeAll(&deferred);
  deferred.Add(wake_);
  deferred.Add([this] { events_.Stop(); });
}

bool Coordinator::RunTables() {
  DeferredActions deferred;
  MutexLock computing(&tables_mu_);
  const bool told = TellShares();
  std::vector<std::shared_ptr<TableBuilder>> due;
  std::vector<Member> members;
  std::set<std::string> published;  // datasets
  {
    MutexLock lock(&mu_);
    due = parts_->tables.TakeDue();
    if (due.empty()) return told;
    members = MembersOf(parts_->membership);
  }
  for (const std::shared_ptr<TableBuilder>& builder : due) {
    const TableBuilder::Built built =
        builder->Build(members, instance_, &table_version_);
    MutexLock lock(&mu_);
    if (parts_->tables.Publish(*builder, built, &deferred))
      published.insert(builder->key().dataset_id);
  }
  MutexLock lock(&mu_);
  TellTables(published, members.size(), parts_.get(), &deferred);
  return true;
}

bool Coordinator::TellShares() {
  const KeptShares::Changes changes = kept_->Take();
  DeferredActions deferred;
  for (const auto& [dataset, workers] : changes) {
    std::vector<std::shared_ptr<const Assignment>> tables;
    {
      MutexLock lock(&mu_);
      tables = parts_->tables.assignments().Of(dataset);
    }
    std::set<std::string> others;
    for (const auto& table : tables)
      for (const std::string& worker : workers)
        table->AddOtherOwners(worker, &others);
    MutexLock lock(&mu_);
    parts_->sessions.TellOwned(dataset, {others.begin(), others.end()});
    deferred.Add(wake_);
  }
  return !changes.empty();
}

}  // namespace leat::server
