// SPDX-License-Identifier: Apache-2.0
//
// Ownership: which shards of which datasets this worker owns first, and who
// else owns shards that it owns at any place, as last assigned. Only caching,
// and from where records come, depends on it. Thread-safe.
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
  std::string public_key;  // empty: it proves nothing
  // Of the records of the shards that it owns first what its caches keep, 0 to
  // 1, as was last told; nullopt: not known.
  std::optional<double> kept_share{};
};

// The first one of a shard's other owners.
struct OtherOwner {
  std::shared_ptr<const Peer> peer;  // null: there is none, or it is not known
  // Of the shard's records, about. nullopt: not known; as of a shard of this
  // worker's, of which the peer may keep what it had when it owned it.
  std::optional<double> kept_share{};

  // Returns whether the peer may keep anything, so that asking it can pay.
  bool may_keep() const { return peer != nullptr && kept_share != 0.0; }
};

struct OwnedShards {
  // The coordinator's message; nothing, which is as if all were owned, where it
  // is malformed.
  static OwnedShards From(const v1::OwnedShards& message);

  std::vector<bool> owned;  // by shard
  // Of a shard peers[peer_of[shard] - 1], if that is not 0.
  std::vector<std::shared_ptr<const Peer>> peers = {};
  std::vector<uint32_t> peer_of = {};

  // Null: there is none.
  std::shared_ptr<const Peer> PeerOf(uint32_t shard) const {
    const uint32_t peer = shard < peer_of.size() ? peer_of[shard] : 0;
    return peer == 0 ? nullptr : peers[peer - 1];
  }
  OtherOwner OtherOwnerOf(uint32_t shard) const;
};

// A shard that has become this worker's own, and who may keep records of it.
struct MovedShard {
  uint32_t shard = 0;
  std::shared_ptr<const Peer> from;
};
// What `now` has that `before` had not. The peer is that of `before`, which was
// the owner then, or else that of `now`, which was it if this worker has just
// joined. Shards without a peer are left out.
std::vector<MovedShard> MovedBetween(const OwnedShards& before,
                                     const OwnedShards& now);

class Ownership {
 public:
  explicit Ownership(size_t max_datasets = 1000)
      : max_datasets_(max_datasets) {}

  // Returns what has moved to this worker. Of more than `max_datasets` the one
  // that was not used for longest is forgotten, as if all its shards were
  // owned.
  std::vector<MovedShard> Set(const std::string& dataset_id, OwnedShards owned);
  // True also where nothing is known.
  bool Owns(const std::string& dataset_id, uint32_t shard) const;
  // Returns the first one of the shard's other owners; null: there is none, or
  // it is not known.
  std::shared_ptr<const Peer> PeerOf(const std::string& dataset_id,
                                     uint32_t shard) const;
  OtherOwner OtherOwnerOf(const std::string& dataset_id, uint32_t shard) const;
  // Whether any shard has another owner beside this worker.
  bool HasPeers() const;

 private:
  struct Dataset {
    OwnedShards shards;
    mutable uint64_t used = 0;  // when last, as counted by uses_
  };

  // Returns null if nothing is known of the dataset.
  const OwnedShards* Find(const std::string& dataset_id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t max_datasets_;
  mutable Mutex mu_;
  absl::flat_hash_map<std::string, Dataset> datasets_ ABSL_GUARDED_BY(mu_);
  mutable uint64_t uses_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace leat::worker
