// SPDX-License-Identifier: Apache-2.0
#include "server/assignments.h"

#include <utility>

namespace leat::server {

bool Assignments::Add(const TableKey& key, uint32_t num_shards) {
  return tables_.try_emplace(key, key, num_shards).second;
}

std::vector<TableKey> Assignments::Update(const Membership& membership) {
  std::vector<TableKey> changed;
  for (auto& [key, table] : tables_)
    if (Update(key, membership, &table)) changed.push_back(key);
  return changed;
}

bool Assignments::Update(const TableKey& key, const Membership& membership) {
  return Update(key, membership, &tables_.at(key));
}

bool Assignments::Update(const TableKey& key, const Membership& membership,
                         Table* table) {
  std::vector<AssignedWorker> members;
  std::vector<WorkerRef> refs;  // in the order of names, as the assigner's
  for (const auto& [name, worker] : membership.workers()) {
    if (worker.state() != WorkerState::kReady || !worker.Has(key.decoder_class))
      continue;
    members.push_back({name, worker.weight});
    refs.push_back({name, worker.registration.address});
  }
  const bool moved = table->assigner.SetWorkers(members);
  if (!moved && table->published && table->published->workers == refs)
    return false;
  auto next = std::make_shared<Assignment>();
  next->dataset_id = key.dataset_id;
  next->instance = instance_;
  next->version = ++version_;
  next->workers = std::move(refs);
  next->owners_per_shard = table->assigner.owners_per_shard();
  const std::span<const uint16_t> owners = table->assigner.owners();
  next->owners.resize(2 * owners.size());
  for (size_t i = 0; i < owners.size(); ++i) {
    next->owners[2 * i] = static_cast<char>(owners[i]);
    next->owners[2 * i + 1] = static_cast<char>(owners[i] >> 8);
  }
  table->published = std::move(next);
  return true;
}

std::shared_ptr<const Assignment> Assignments::Get(const TableKey& key) const {
  const auto it = tables_.find(key);
  return it == tables_.end() ? nullptr : it->second.published;
}

std::shared_ptr<const Assignment> Assignments::ForWorkers(
    std::string_view dataset_id) const {
  const auto it =
      tables_.lower_bound({std::string(dataset_id), DecoderClass::kExact});
  if (it == tables_.end() || it->first.dataset_id != dataset_id) return nullptr;
  return it->second.published;
}

std::vector<TableKey> Assignments::keys() const {
  std::vector<TableKey> keys;
  for (const auto& [key, table] : tables_) keys.push_back(key);
  return keys;
}

std::map<std::string, uint64_t> Assignments::Loads() const {
  std::map<std::string, uint64_t> loads;
  for (const auto& [key, table] : tables_) {
    const std::span<const AssignedWorker> workers = table.assigner.workers();
    for (size_t i = 0; i < workers.size(); ++i)
      loads[workers[i].name] += table.assigner.load(static_cast<uint16_t>(i));
  }
  return loads;
}

}  // namespace leat::server
