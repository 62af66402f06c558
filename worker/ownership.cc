// SPDX-License-Identifier: Apache-2.0
#include "worker/ownership.h"

#include <utility>

#include "core/shard_table.h"

namespace leat::worker {

// A shard that is named twice has the last one of its peers.
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
        Peer{peer.name(), peer.address(), peer.public_key()}));
    shards.peer_of.resize(count);
    for (const uint32_t shard : of.shards())
      if (shard < count)
        shards.peer_of[shard] = static_cast<uint32_t>(shards.peers.size());
  }
  return shards;
}

void Ownership::Set(const std::string& dataset_id, OwnedShards owned) {
  MutexLock lock(&mu_);
  if (datasets_.size() >= max_datasets_ && !datasets_.contains(dataset_id))
    return;
  // What was there goes with the parameter, without the lock.
  std::swap(datasets_[dataset_id], owned);
}

bool Ownership::Owns(const std::string& dataset_id, uint32_t shard) const {
  MutexLock lock(&mu_);
  const auto it = datasets_.find(dataset_id);
  return it == datasets_.end() || shard >= it->second.owned.size() ||
         it->second.owned[shard];
}

std::shared_ptr<const Peer> Ownership::PeerOf(const std::string& dataset_id,
                                              uint32_t shard) const {
  MutexLock lock(&mu_);
  const auto it = datasets_.find(dataset_id);
  if (it == datasets_.end() || shard >= it->second.peer_of.size())
    return nullptr;
  const uint32_t peer = it->second.peer_of[shard];
  return peer == 0 ? nullptr : it->second.peers[peer - 1];
}

}  // namespace leat::worker
