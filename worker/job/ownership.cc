// SPDX-License-Identifier: Apache-2.0
#include "worker/job/ownership.h"

#include <algorithm>
#include <utility>

#include "core/plan/shard_table.h"

namespace leat::worker {
namespace {

// Returns nullopt if the value is not a share, so that the peer is asked as
// usual.
std::optional<double> KeptShareIn(const v1::ShardsOfPeer& of) {
  const double share = of.kept_share();
  if (!of.has_kept_share() || !(share >= 0 && share <= 1)) return std::nullopt;
  return share;
}

}  // namespace

// If a shard is named twice, the last of its peers counts.
OwnedShards OwnedShards::From(const v1::OwnedShards& message) {
  OwnedShards shards;
  const uint32_t count = message.num_shards();
  const std::string& bits = message.owned();
  if (count > kMaxShards || bits.size() != (count + 7) / 8) return shards;
  shards.owned.resize(count);
  for (uint32_t i = 0; i < count; ++i)
    shards.owned[i] = bits[i / 8] >> i % 8 & 1;
  for (const v1::ShardsOfPeer& of : message.peers()) {
    const v1::WorkerRef& peer = of.peer();
    shards.peers.push_back(std::make_shared<const Peer>(
        Peer{peer.name(), peer.address(), peer.public_key(), KeptShareIn(of)}));
    shards.peer_of.resize(count);
    for (const uint32_t shard : of.shards())
      if (shard < count)
        shards.peer_of[shard] = static_cast<uint32_t>(shards.peers.size());
  }
  return shards;
}

OtherOwner OwnedShards::OtherOwnerOf(uint32_t shard) const {
  OtherOwner other{.peer = PeerOf(shard)};
  if (other.peer != nullptr && !(shard < owned.size() && owned[shard]))
    other.kept_share = other.peer->kept_share;
  return other;
}

std::vector<MovedShard> MovedBetween(const OwnedShards& before,
                                     const OwnedShards& now) {
  std::vector<MovedShard> moved;
  for (uint32_t shard = 0; shard < now.owned.size(); ++shard) {
    const bool had = shard < before.owned.size() && before.owned[shard];
    if (!now.owned[shard] || had) continue;
    std::shared_ptr<const Peer> from = before.PeerOf(shard);
    if (from == nullptr) from = now.PeerOf(shard);
    if (from != nullptr) moved.push_back({shard, std::move(from)});
  }
  return moved;
}

std::vector<MovedShard> Ownership::Set(const std::string& dataset_id,
                                       OwnedShards owned) {
  OwnedShards before, least_used;  // destroyed without the lock
  MutexLock lock(&mu_);
  if (datasets_.size() >= max_datasets_ && !datasets_.contains(dataset_id)) {
    const auto least = std::ranges::min_element(
        datasets_, {}, [](const auto& each) { return each.second.used; });
    least_used = std::move(least->second.shards);
    datasets_.erase(least);
  }
  Dataset& dataset = datasets_[dataset_id];
  dataset.used = ++uses_;
  before = std::exchange(dataset.shards, std::move(owned));
  return MovedBetween(before, dataset.shards);
}

const OwnedShards* Ownership::Find(const std::string& dataset_id) const {
  const auto it = datasets_.find(dataset_id);
  if (it == datasets_.end()) return nullptr;
  it->second.used = ++uses_;
  return &it->second.shards;
}

bool Ownership::HasPeers() const {
  MutexLock lock(&mu_);
  return std::ranges::any_of(datasets_, [](const auto& each) {
    return !each.second.shards.peers.empty();
  });
}

bool Ownership::Owns(const std::string& dataset_id, uint32_t shard) const {
  MutexLock lock(&mu_);
  const OwnedShards* const known = Find(dataset_id);
  return known == nullptr || shard >= known->owned.size() ||
         known->owned[shard];
}

std::shared_ptr<const Peer> Ownership::PeerOf(const std::string& dataset_id,
                                              uint32_t shard) const {
  MutexLock lock(&mu_);
  const OwnedShards* const known = Find(dataset_id);
  return known == nullptr ? nullptr : known->PeerOf(shard);
}

OtherOwner Ownership::OtherOwnerOf(const std::string& dataset_id,
                                   uint32_t shard) const {
  MutexLock lock(&mu_);
  const OwnedShards* const known = Find(dataset_id);
  return known == nullptr ? OtherOwner{} : known->OtherOwnerOf(shard);
}

}  // namespace leat::worker
