// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/parts/tables.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace leat::server {
namespace {

// Takes the larger count of memory and disk, since most records in one are in
// the other too.
std::map<std::string, uint64_t> RecordsKept(const v1::WorkerStats& stats) {
  std::map<std::string, uint64_t> kept;
  for (const auto* list :
       {&stats.cached_datasets(), &stats.disk_cached_datasets()})
    for (const v1::CachedDataset& each : *list) {
      if (each.dataset_id().empty()) continue;
      uint64_t& records = kept[each.dataset_id()];
      records = std::max<uint64_t>(records, each.entries());
    }
  return kept;
}

// Returns about how many samples are in the shards with the worker as primary
// owner.
double SamplesOwned(
    const std::vector<std::shared_ptr<const Assignment>>& tables,
    const ShardTable& shards, std::string_view worker) {
  for (const auto& table : tables)
    if (const size_t owned = table->OwnedBy(worker).size(); owned > 0)
      return static_cast<double>(shards.num_samples()) *
             static_cast<double>(owned) /
             static_cast<double>(shards.num_shards());
  return 0;
}

}  // namespace

std::vector<TableKey> KeysOf(const State& state, const JobInfo& job) {
  const std::optional<Decoders> decoders = state.DecodersOf(job.plan_hash);
  const Abilities abilities = AbilitiesFor(job.spec);
  std::set<TableKey> keys;
  for (const DatasetInfo& dataset : job.datasets)
    keys.insert({dataset.id, job.spec.decoder_class,
                 decoders ? decoders->digest : Digest{}, abilities});
  return {keys.begin(), keys.end()};
}

void Tables::Recover(DeferredActions* deferred) {
  for (const auto& [name, job] : state_->jobs()) Use(*job.info, deferred);
  assignments_.ForgetNew();
  recovered_jobs_ = !state_->jobs().empty();
}

void Tables::Start() {
  if (recovered_jobs_) publish_after_ = MonotonicTime::max();
}

void Tables::ProlongPublishDelay(Now now) {
  if (!publish_after_) return;
  if (*publish_after_ == MonotonicTime::max()) first_worker_at_ = now.mono;
  const MembershipConfig& members = config_.membership;
  publish_after_ =
      std::min(now.mono + members.lost_after,
               first_worker_at_ + members.max_holds * members.lost_after);
}

void Tables::Use(const JobInfo& job, DeferredActions* deferred) {
  std::map<std::string_view, const DatasetInfo*> datasets;
  for (const DatasetInfo& dataset : job.datasets)
    datasets.emplace(dataset.id, &dataset);
  for (const TableKey& key : KeysOf(*state_, job)) {
    const DatasetInfo& dataset = *datasets.at(key.dataset_id);
    assignments_.Use(key, dataset.fingerprint, dataset.shards.num_shards());
  }
  if (assignments_.has_new()) deferred->Add(wake_);
}

void Tables::Release(std::span<const TableKey> keys,
                     DeferredActions* deferred) {
  for (const TableKey& key : keys) ReleaseOne(key, deferred);
}

void Tables::ReleaseOne(const TableKey& key, DeferredActions* deferred) {
  const std::shared_ptr<const Assignment> gone = assignments_.Release(key);
  if (gone == nullptr || !assignments_.Uses(key.dataset_id)) return;
  // Its workers now own what the other tables of the dataset say.
  std::vector<std::string> workers;
  for (const WorkerRef& worker : gone->workers) workers.push_back(worker.name);
  sessions_->TellTable(key);
  sessions_->TellOwned(key.dataset_id, workers);
  deferred->Add(wake_);
}

void Tables::MembersChanged(Now now, DeferredActions* deferred) {
  if (update_at_) return;
  update_at_ = now.mono + config_.assignment_delay;
  deferred->Add(wake_);
}

bool Tables::Tick(Now now, DeferredActions* deferred) {
  if (kept_->Release(now.mono)) deferred->Add(wake_);
  if (publish_after_ && now.mono >= *publish_after_) publish_after_.reset();
  if (!update_at_ || now.mono < *update_at_ || publish_after_) return false;
  update_at_.reset();
  all_due_ = true;
  deferred->Add(wake_);
  return true;
}

MonotonicTime Tables::NextDeadline() const {
  if (!update_at_) return kept_->due();
  const MonotonicTime update =
      publish_after_ ? std::max(*update_at_, *publish_after_) : *update_at_;
  return std::min(update, kept_->due());
}

std::vector<std::shared_ptr<TableBuilder>> Tables::TakeDue() {
  return assignments_.Due(std::exchange(all_due_, false));
}

bool Tables::Publish(const TableBuilder& builder,
                     const TableBuilder::Built& built,
                     DeferredActions* deferred) {
  if (!assignments_.Publish(builder, built) || built.table == nullptr)
    return false;
  sessions_->TellTable(builder.key());
  sessions_->TellOwned(builder.key().dataset_id, built.changed);
  deferred->Add(wake_);
  return true;
}

std::optional<OwnedShards> Tables::NextOwned(WorkerSession* session) const {
  while (true) {
    std::string dataset;
    if (!session->datasets.empty()) {
      dataset = std::move(
          session->datasets.extract(session->datasets.begin()).value());
    } else if (session->initial_sync) {
      dataset = assignments_.DatasetAfter(session->synced);
      session->synced = dataset;
      session->initial_sync = !dataset.empty();
    }
    if (dataset.empty()) return std::nullopt;
    OwnedShards owned{dataset, session->name, 0, assignments_.Of(dataset),
                      kept_};
    if (owned.tables.empty()) continue;
    owned.num_shards = owned.tables.front()->num_shards();
    return owned;
  }
}

void Tables::NoteKept(const std::string& worker, const v1::WorkerStats& stats,
                      Now now, DeferredActions* deferred) {
  std::map<std::string, double> shares;
  for (const auto& [id, records] : RecordsKept(stats)) {
    const DatasetRecord* const dataset = state_->FindDataset(id);
    if (dataset == nullptr) continue;
    const double owned =
        SamplesOwned(assignments_.Of(id), dataset->info->shards, worker);
    if (owned > 0)
      shares[id] = std::min(1.0, static_cast<double>(records) / owned);
  }
  const bool waited = kept_->due() != MonotonicTime::max();
  kept_->Note(worker, shares, now.mono);
  if (!waited && kept_->due() != MonotonicTime::max()) deferred->Add(wake_);
}

}  // namespace leat::server
