// SPDX-License-Identifier: Apache-2.0
//
// What workers keep of the shards that they own first, and who is told:
//
//   heartbeat ──► NoteKept ──► KeptShares ──(Tick, when due)──► TellShares
//                                  ▲                                │
//                 NextForWorker ───┘ ◄── the other owners of these ─┘
//
// A worker is told its OwnedShards with the shares as they are then.
#include <algorithm>

#include "server/coordinator/internal.h"

namespace leat::server {
namespace {

// Takes the larger count of memory and disk, since most records that are in one
// are in the other.
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

// Returns about how many samples lie in the shards that the worker owns first.
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

void Coordinator::NoteKept(const std::string& worker,
                           const v1::WorkerStats& stats, Now now,
                           Effects* effects) {
  std::map<std::string, double> shares;
  for (const auto& [id, records] : RecordsKept(stats)) {
    const DatasetRecord* const dataset = state_.FindDataset(id);
    if (dataset == nullptr) continue;
    const double owned =
        SamplesOwned(assignments_.Of(id), dataset->info->shards, worker);
    if (owned > 0)
      shares[id] = std::min(1.0, static_cast<double>(records) / owned);
  }
  const bool waited = kept_->due() != MonotonicTime::max();
  kept_->Note(worker, shares, now.mono);
  if (!waited && kept_->due() != MonotonicTime::max()) effects->Add(wake_);
}

bool Coordinator::TellShares() {
  const KeptShares::Changes changes = kept_->Take();
  Effects effects;
  for (const auto& [dataset, workers] : changes) {
    std::vector<std::shared_ptr<const Assignment>> tables;
    {
      MutexLock lock(&mu_);
      tables = assignments_.Of(dataset);
    }
    std::set<std::string> others;
    for (const auto& table : tables)
      for (const std::string& worker : workers)
        table->AddOtherOwners(worker, &others);
    MutexLock lock(&mu_);
    TellOwned(dataset, {others.begin(), others.end()});
    effects.Add(wake_);
  }
  return !changes.empty();
}

}  // namespace leat::server
