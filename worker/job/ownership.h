// SPDX-License-Identifier: Apache-2.0
//
// Ownership: the shards of each dataset whose primary owner this worker is, and
// the other owners of the shards that it owns in any position, as last
// assigned. Only caching, and the choice where records are read, depend on it.
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/mutex.h"
#include "leat/v1/coordinator.pb.h"

namespace leat::worker {

// Another worker. Immutable.
struct Peer {
  std::string name;
  std::string address;     // gRPC target
  std::string public_key;  // empty: it cannot prove its identity
  // The fraction, 0 to 1, of the records of its primary shards that its caches
  // keep, as last reported; nullopt: not known.
  std::optional<double> kept_share{};
};

// The first of a shard's other owners.
struct OtherOwner {
  std::shared_ptr<const Peer> peer;  // nullptr: none, or not known
  // The fraction of the shard's records that it keeps, approximately. nullopt:
  // not known; for example for a shard of this worker's, because the peer may
  // still keep records from when it owned the shard.
  std::optional<double> kept_share{};

  // Returns whether the peer may keep anything, so that asking it can pay.
  bool may_keep() const { return peer != nullptr && kept_share != 0.0; }
};

struct OwnedShards {
  // Converts the coordinator's message. Returns an empty object, which is as if
  // all shards were owned, if the message is malformed.
  static OwnedShards From(const v1::OwnedShards& message);

  std::vector<bool> owned;  // by shard
  // The peer of a shard is peers[peer_of[shard] - 1], unless peer_of is 0.
  std::vector<std::shared_ptr<const Peer>> peers = {};
  std::vector<uint32_t> peer_of = {};

  // Returns nullptr if there is none.
  std::shared_ptr<const Peer> PeerOf(uint32_t shard) const {
    const uint32_t peer = shard < peer_of.size() ? peer_of[shard] : 0;
    return peer == 0 ? nullptr : peers[peer - 1];
  }
  OtherOwner OtherOwnerOf(uint32_t shard) const;
};

// A shard that has become this worker's own, and the peer that may keep records
// of it.
struct MovedShard {
  uint32_t shard = 0;
  std::shared_ptr<const Peer> from;
};
// Returns the shards that `now` has and `before` had not. The peer is taken
// from `before`, when it was the owner, or else from `now`, when it was the
// owner if this worker has just joined. Shards without a peer are left out.
std::vector<MovedShard> MovedBetween(const OwnedShards& before,
                                     const OwnedShards& now);

class Ownership {
 public:
  explicit Ownership(size_t max_datasets = 1000)
      : max_datasets_(max_datasets) {}

  // Returns the shards that have moved to this worker. Beyond `max_datasets`
  // the least recently used dataset is forgotten, as if all its shards were
  // owned.
  std::vector<MovedShard> Set(const std::string& dataset_id, OwnedShards owned);
  // Returns true also if nothing is known.
  bool Owns(const std::string& dataset_id, uint32_t shard) const;
  // Returns the first of the shard's other owners; nullptr if there is none, or
  // it is not known.
  std::shared_ptr<const Peer> PeerOf(const std::string& dataset_id,
                                     uint32_t shard) const;
  OtherOwner OtherOwnerOf(const std::string& dataset_id, uint32_t shard) const;
  // True if any shard has another owner beside this worker.
  bool HasPeers() const;

 private:
  struct Dataset {
    OwnedShards shards;
    mutable uint64_t used = 0;  // the count uses_ at its last use
  };

  // Returns nullptr if nothing is known of the dataset.
  const OwnedShards* Find(const std::string& dataset_id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t max_datasets_;
  mutable Mutex mu_;
  absl::flat_hash_map<std::string, Dataset> datasets_ ABSL_GUARDED_BY(mu_);
  mutable uint64_t uses_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace leat::worker
