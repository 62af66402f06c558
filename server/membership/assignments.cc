// SPDX-License-Identifier: Apache-2.0
#include "server/membership/assignments.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/string_view.h"
#include "leat/v1/coordinator.pb.h"
#include "server/state/decoders.h"

namespace leat::server {
namespace {

std::string Encoded(const Assignment& assignment) {
  v1::ConsumerSessionResponse response;
  v1::Assignment& proto = *response.mutable_assignment();
  proto.set_dataset_id(assignment.dataset_id);
  proto.set_instance(assignment.instance);
  proto.set_version(assignment.version);
  for (const WorkerRef& worker : assignment.workers)
    *proto.add_workers() = ToProto(worker);
  proto.set_owners_per_shard(assignment.owners_per_shard);
  proto.set_owners(assignment.owners);
  return response.SerializeAsString();
}

// Sorts the shards by primary owner.
void SortShards(std::span<const uint16_t> owners, Assignment* table) {
  const uint32_t stride = table->owners_per_shard;
  table->starts.assign(table->workers.size() + 1, 0);
  for (size_t i = 0; i < owners.size(); i += stride)
    ++table->starts[owners[i] + 1];
  for (size_t i = 1; i < table->starts.size(); ++i)
    table->starts[i] += table->starts[i - 1];
  std::vector<uint32_t> next = table->starts;
  table->shards.resize(owners.size() / stride);
  for (size_t i = 0; i < owners.size(); i += stride)
    table->shards[next[owners[i]]++] = static_cast<uint32_t>(i / stride);
}

// Does the same for all entries of `owners`, sorted by owner.
void SortPlaces(std::span<const uint16_t> owners, Assignment* table) {
  table->place_starts.assign(table->workers.size() + 1, 0);
  for (const uint16_t owner : owners) ++table->place_starts[owner + 1];
  for (size_t i = 1; i < table->place_starts.size(); ++i)
    table->place_starts[i] += table->place_starts[i - 1];
  std::vector<uint32_t> next = table->place_starts;
  table->places.resize(owners.size());
  for (size_t i = 0; i < owners.size(); ++i)
    table->places[next[owners[i]]++] = static_cast<uint32_t>(i);
}

uint16_t OwnerAt(const Assignment& table, uint32_t place) {
  return static_cast<uint16_t>(
      static_cast<uint8_t>(table.owners[2 * size_t{place}]) |
      static_cast<uint8_t>(table.owners[2 * size_t{place} + 1]) << 8);
}

// Returns the index in `owners` of the first other owner. REQUIRES: there is
// one.
uint32_t OtherPlace(const Assignment& table, uint32_t place) {
  const uint32_t first = place - place % table.owners_per_shard;
  return place == first ? first + 1 : first;
}

std::span<const uint32_t> Of(const Assignment& table, std::string_view worker,
                             const std::vector<uint32_t>& starts,
                             const std::vector<uint32_t>& values) {
  const auto it =
      std::lower_bound(table.workers.begin(), table.workers.end(), worker,
                       [](const WorkerRef& ref, std::string_view name) {
                         return ref.name < name;
                       });
  if (it == table.workers.end() || it->name != worker || starts.empty())
    return {};
  const size_t i = static_cast<size_t>(it - table.workers.begin());
  return std::span(values).subspan(starts[i], starts[i + 1] - starts[i]);
}

// Returns whether the worker is to be told: it is the primary owner of other
// shards, or has another peer for a shard.
bool IsChanged(const Assignment& before, const Assignment& now,
               std::string_view worker) {
  if (!std::ranges::equal(now.OwnedBy(worker), before.OwnedBy(worker)))
    return true;
  const std::span<const uint32_t> places = now.PlacesOf(worker);
  if (!std::ranges::equal(places, before.PlacesOf(worker)) ||
      before.owners_per_shard != now.owners_per_shard)
    return true;
  return now.owners_per_shard > 1 &&
         std::ranges::any_of(places, [&](uint32_t place) {
           return *now.PeerAt(place) != *before.PeerAt(place);
         });
}

// Returns the workers, of either table, that are to be told.
std::vector<std::string> Changed(const Assignment* before,
                                 const Assignment& now) {
  std::vector<std::string> changed;
  for (const WorkerRef& worker : now.workers)
    if (before == nullptr || IsChanged(*before, now, worker.name))
      changed.push_back(worker.name);
  if (before == nullptr) return changed;
  for (const WorkerRef& worker : before->workers)
    if (now.PlacesOf(worker.name).empty() &&
        !before->PlacesOf(worker.name).empty())
      changed.push_back(worker.name);
  return changed;
}

}  // namespace

v1::WorkerRef ToProto(const WorkerRef& worker) {
  v1::WorkerRef proto;
  proto.set_name(worker.name);
  proto.set_address(worker.address);
  proto.set_public_key(worker.public_key);
  return proto;
}

std::span<const uint32_t> Assignment::OwnedBy(std::string_view worker) const {
  return Of(*this, worker, starts, shards);
}

std::span<const uint32_t> Assignment::PlacesOf(std::string_view worker) const {
  return Of(*this, worker, place_starts, places);
}

const WorkerRef* Assignment::PeerAt(uint32_t place) const {
  return owners_per_shard < 2
             ? nullptr
             : &workers[OwnerAt(*this, OtherPlace(*this, place))];
}

void Assignment::AddOtherOwners(std::string_view worker,
                                std::set<std::string>* names) const {
  std::set<uint16_t> others;
  for (const uint32_t shard : OwnedBy(worker))
    for (uint32_t i = 1; i < owners_per_shard; ++i)
      others.insert(OwnerAt(*this, shard * owners_per_shard + i));
  for (const uint16_t other : others) names->insert(workers[other].name);
}

OwnedShards::ShardsByPeer OwnedShards::Peers(const Assignment** table) const {
  *table = nullptr;
  ShardsByPeer peers;
  for (const auto& each : tables) {
    const std::span<const uint32_t> places = each->PlacesOf(worker);
    if (places.empty() || each->owners_per_shard < 2) continue;
    *table = each.get();
    for (const uint32_t place : places)
      peers[OwnerAt(*each, OtherPlace(*each, place))].push_back(
          place / each->owners_per_shard);
    break;
  }
  return peers;
}

std::string OwnedShards::Bits() const {
  std::string bits((num_shards + 7) / 8, '\0');
  for (const auto& table : tables)
    for (const uint32_t shard : table->OwnedBy(worker))
      bits[shard / 8] = static_cast<char>(bits[shard / 8] | 1 << shard % 8);
  return bits;
}

std::vector<Member> MembersOf(const Membership& membership) {
  std::vector<Member> members;
  members.reserve(membership.num_ready());
  for (const auto& [name, worker] : membership.workers())
    if (worker.state() == WorkerState::kReady)
      members.push_back({worker.registration, worker.weight, worker.failures});
  return members;
}

bool Member::FailsToRead(const Digest& fingerprint) const {
  const std::string wanted(fingerprint.begin(), fingerprint.end());
  return std::ranges::any_of(failures, [&](const v1::StorageFailure& failure) {
    const auto& datasets = failure.fingerprints();
    return datasets.empty() ||
           std::ranges::find(datasets, wanted) != datasets.end();
  });
}

TableBuilder::Built TableBuilder::Build(const std::vector<Member>& members,
                                        uint64_t instance, uint64_t* version) {
  std::vector<AssignedWorker> fit;
  std::vector<WorkerRef> refs;  // sorted by name, as the assigner's
  const auto collect = [&](bool failing_too) {
    for (const Member& member : members) {
      const WorkerRegistration& worker = *member.registration;
      if ((!failing_too && member.FailsToRead(fingerprint_)) ||
          !HasAll(worker.abilities, key_.abilities) ||
          !DecodesAs(worker, key_.decoder_class, key_.decoders))
        continue;
      fit.push_back({worker.name, member.weight});
      refs.push_back({worker.name, worker.address, worker.public_key});
    }
  };
  collect(/*failing_too=*/false);
  // A new table of failing workers is better than none.
  if (fit.empty() && last_ == nullptr) collect(/*failing_too=*/true);
  if (fit.empty()) return {};
  const bool moved = assigner_.SetWorkers(fit);
  if (!moved && last_ != nullptr && last_->workers == refs) return {};
  auto next = std::make_shared<Assignment>();
  next->dataset_id = key_.dataset_id;
  next->instance = instance;
  next->version = ++*version;
  next->workers = std::move(refs);
  next->owners_per_shard = assigner_.owners_per_shard();
  const std::span<const uint16_t> owners = assigner_.owners();
  next->owners.resize(2 * owners.size());
  for (size_t i = 0; i < owners.size(); ++i) {
    next->owners[2 * i] = static_cast<char>(owners[i]);
    next->owners[2 * i + 1] = static_cast<char>(owners[i] >> 8);
  }
  SortShards(owners, next.get());
  SortPlaces(owners, next.get());
  next->encoded = Encoded(*next);
  Built built{next, Changed(last_.get(), *next)};
  last_ = std::move(next);
  return built;
}

void Assignments::Use(const TableKey& key, const Digest& fingerprint,
                      uint32_t num_shards) {
  Table& table = tables_[key];
  if (table.users++ > 0) return;
  table.builder = std::make_shared<TableBuilder>(key, fingerprint, num_shards);
  new_.insert(key);
}

std::shared_ptr<const Assignment> Assignments::Release(const TableKey& key) {
  const auto it = tables_.find(key);
  if (it == tables_.end() || --it->second.users > 0) return nullptr;
  std::shared_ptr<const Assignment> published = std::move(it->second.published);
  if (published != nullptr) AddLoads(*published, false);
  tables_.erase(it);
  new_.erase(key);
  return published;
}

std::vector<std::shared_ptr<TableBuilder>> Assignments::Due(bool all) const {
  std::vector<std::shared_ptr<TableBuilder>> due;
  if (all)
    for (const auto& [key, table] : tables_) due.push_back(table.builder);
  else
    for (const TableKey& key : new_) due.push_back(tables_.at(key).builder);
  return due;
}

bool Assignments::Publish(const TableBuilder& builder,
                          const TableBuilder::Built& built) {
  const auto it = tables_.find(builder.key());
  if (it == tables_.end() || it->second.builder.get() != &builder) return false;
  new_.erase(builder.key());
  if (built.table == nullptr) return true;
  if (it->second.published != nullptr) AddLoads(*it->second.published, false);
  it->second.published = built.table;
  AddLoads(*built.table, true);
  return true;
}

void Assignments::AddLoads(const Assignment& table, bool add) {
  for (size_t i = 0; i < table.workers.size(); ++i) {
    const uint32_t load = table.starts[i + 1] - table.starts[i];
    if (load == 0) continue;
    const auto it = loads_.try_emplace(table.workers[i].name, 0).first;
    it->second = add ? it->second + load : it->second - load;
    if (it->second == 0) loads_.erase(it);
  }
}

std::shared_ptr<const Assignment> Assignments::Get(const TableKey& key) const {
  const auto it = tables_.find(key);
  return it == tables_.end() ? nullptr : it->second.published;
}

std::vector<std::shared_ptr<const Assignment>> Assignments::Of(
    std::string_view dataset_id) const {
  std::vector<std::shared_ptr<const Assignment>> tables;
  for (auto it = tables_.lower_bound({std::string(dataset_id), DecoderClass{}});
       it != tables_.end() && it->first.dataset_id == dataset_id; ++it)
    if (it->second.published != nullptr) tables.push_back(it->second.published);
  return tables;
}

bool Assignments::Uses(std::string_view dataset_id) const {
  const auto it =
      tables_.lower_bound({std::string(dataset_id), DecoderClass{}});
  return it != tables_.end() && it->first.dataset_id == dataset_id;
}

std::string Assignments::DatasetAfter(const std::string& after) const {
  for (auto it = tables_.upper_bound({after, DecoderClass{0xff}});
       it != tables_.end(); ++it)
    if (it->second.published != nullptr) return it->first.dataset_id;
  return {};
}

uint64_t Assignments::Load(std::string_view worker) const {
  const auto it = loads_.find(absl::string_view(worker.data(), worker.size()));
  return it == loads_.end() ? 0 : it->second;
}

}  // namespace leat::server
