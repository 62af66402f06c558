// SPDX-License-Identifier: Apache-2.0
//
// Assigner decides which workers own which shards, and in which order.
//
// It uses weighted rendezvous hashing (Thaler and Ravishankar, 1998; weights by
// Schindelhauer and Schomaker, 2005) with bounded load (Mirrokni, Thorup and
// Zadimoghaddam, 2016): a shard's owners are the workers of the highest scores
// -weight / ln(hash(worker, shard)); the primary owner is the best one whose
// load is under kLoadBound × its fair share. Changes are minimal: losing a
// worker moves only the shards whose primary owner it was; a joining worker
// takes the shards that rank it best, and those that the others now hold over
// their bound.
//
// Cost, in hashes, for S shards and W workers: S·W for the first table, S for
// each worker that joins or changes weight, about kOwnersPerShard·S for each
// lost worker. Memory: 10 bytes per shard.
//
// A dataset's table affects only performance: any table gives the same batches,
// only caches differ. Thread-compatible; the owner locks. Deterministic: uses
// no clock and no randomness.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

inline constexpr double kLoadBound =
    1.05;  // maximum of load over fair share (plus one shard)
inline constexpr uint32_t kOwnersPerShard =
    3;  // fewer if there are fewer workers

struct AssignedWorker {
  std::string name;     // unique; the hashes use it
  double weight = 1.0;  // > 0
  friend bool operator==(const AssignedWorker&,
                         const AssignedWorker&) = default;
};

// Computes the owners of every shard of one dataset.
class Assigner {
 public:
  // `dataset` salts the hashes, so that equal shard numbers of different
  // datasets are unrelated.
  Assigner(std::string_view dataset, uint32_t num_shards);

  // Sets the workers (any order). Returns true if the table changed. At most
  // 65,535 workers.
  bool SetWorkers(std::span<const AssignedWorker> workers);

  std::span<const AssignedWorker> workers() const { return workers_; }
  uint32_t num_shards() const { return num_shards_; }
  // min(kOwnersPerShard, number of workers).
  uint32_t owners_per_shard() const { return owners_per_shard_; }
  // num_shards × owners_per_shard indices into workers(), best first.
  std::span<const uint16_t> owners() const { return owners_; }
  // Returns the number of shards whose primary owner is `worker` (index into
  // workers()).
  uint32_t load(uint16_t worker) const { return loads_[worker]; }

 private:
  struct Change;  // how one list of workers becomes the next
  struct Ranked;  // a worker and its key for one shard
  struct Left;    // what KeepOwners leaves to the next steps

  Change Replace(std::vector<AssignedWorker> next);
  // The steps of SetWorkers, in order.
  // 1: owners that stay keep their shards. `before`: the previous table, with
  // `stride` owners per shard and the workers' old numbers.
  Left KeepOwners(const Change& change, std::span<const uint16_t> before,
                  uint32_t stride);
  // 2: if a shard keeps its primary owner, and lacks another owner or has one
  // whose weight changed, the other owners are ranked anew.
  void RefillAll(std::span<const uint32_t> gaps);
  // 3: joiners take the shards that rank them best, while they have room.
  void OfferAll(std::span<const uint16_t> joiners);
  // 4: shards without a primary owner go to the best worker that has room.
  void PlaceAll(std::span<const uint32_t> unowned);
  // 5: shards that a worker holds over its limit move, those that rank it worst
  // first.
  void ShedOverload();

  uint64_t ShardHash(uint32_t shard) const;
  double Key(uint64_t shard_hash, uint16_t worker) const;
  size_t Rank(uint64_t shard_hash, bool only_open,
              std::span<Ranked> best) const;
  uint16_t BestOpen(uint64_t shard_hash) const;
  void SetOwners(uint32_t shard, uint16_t first,
                 std::span<const Ranked> ranked);
  void Refill(uint32_t shard);
  void Offer(uint32_t shard, std::span<const uint16_t> joiners);
  void Place(uint32_t shard);

  const uint64_t salt_;
  const uint32_t num_shards_;
  uint32_t owners_per_shard_ = 0;
  std::vector<AssignedWorker> workers_;  // sorted by name
  std::vector<uint16_t> owners_;
  std::vector<uint32_t> loads_;
  // Indexed by worker: hash of the name, 1 / weight, the maximum load.
  std::vector<uint64_t> hashes_;
  std::vector<double> inverse_weights_;
  std::vector<uint32_t> limits_;
  // Indexed by shard: the largest key of its owners; all other workers' keys
  // are above it.
  std::vector<float> worst_keys_;
};

}  // namespace leat
