// SPDX-License-Identifier: Apache-2.0
//
// A worker's key for a shard is -ln(1 - v) / weight with v = hash(worker,
// shard) in [0, 1): an exponential variate whose rate is the weight, so that
// each worker has the smallest of all keys with probability weight / sum of
// weights. It is the reciprocal of the header's score: small is good.
//
// Because -ln(1 - v) >= v, a worker with v / weight >= limit cannot have a key
// below the limit. That test, one multiplication, rejects nearly all workers
// once a few good ones are known; logarithms are computed for the rest only.
#include "core/cluster/assignment.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace leat {
namespace {

constexpr uint16_t kNobody = 0xffff;
// The number of best workers that are tried before a search among all workers
// with room.
constexpr size_t kCandidates = 8;

uint64_t Mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

// FNV-1a, then mixed.
uint64_t HashText(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  return Mix(hash + 0x9e3779b97f4a7c15u);
}

double ToUnit(uint64_t hash) {
  return static_cast<double>(hash >> 11) * 0x1p-53;
}

// Returns a float that is not below `key`.
float RoundUp(double key) {
  return std::nextafter(static_cast<float>(key),
                        std::numeric_limits<float>::infinity());
}

}  // namespace

struct Assigner::Ranked {
  double key = 0;
  uint16_t worker = kNobody;
  bool operator<(const Ranked& other) const {
    return key != other.key ? key < other.key : worker < other.worker;
  }
};

struct Assigner::Change {
  std::vector<uint16_t> renumbered;  // old index -> new, or kNobody
  // New workers, or those whose weight has changed.
  std::vector<uint16_t> joiners;
  std::vector<bool> reweighted;  // by new index
  bool members_changed = false;
  bool weights_changed = false;
};

struct Assigner::Left {
  std::vector<uint32_t> unowned;  // shards whose primary owner has left
  std::vector<uint32_t> gaps;     // other shards that must be ranked anew
};

Assigner::Assigner(std::string_view dataset, uint32_t num_shards)
    : salt_(HashText(dataset)),
      num_shards_(num_shards),
      worst_keys_(num_shards, 0) {}

uint64_t Assigner::ShardHash(uint32_t shard) const {
  return Mix(salt_ + (uint64_t{shard} + 1) * 0x9e3779b97f4a7c15u);
}

double Assigner::Key(uint64_t shard_hash, uint16_t worker) const {
  const double v = ToUnit(Mix(shard_hash ^ hashes_[worker]));
  return -std::log1p(-v) * inverse_weights_[worker];
}

// Fills `best` with the smallest keys in order; returns how many there are.
// `only_open` excludes workers without room.
size_t Assigner::Rank(uint64_t shard_hash, bool only_open,
                      std::span<Ranked> best) const {
  size_t found = 0;
  double limit = std::numeric_limits<double>::infinity();
  const size_t num_workers = workers_.size();
  for (size_t i = 0; i < num_workers; ++i) {
    const double v = ToUnit(Mix(shard_hash ^ hashes_[i]));
    if (v * inverse_weights_[i] >= limit) continue;
    if (only_open && loads_[i] >= limits_[i]) continue;
    const Ranked ranked{-std::log1p(-v) * inverse_weights_[i],
                        static_cast<uint16_t>(i)};
    if (found == best.size() && !(ranked < best.back())) continue;
    size_t at = found < best.size() ? found++ : found - 1;
    for (; at > 0 && ranked < best[at - 1]; --at) best[at] = best[at - 1];
    best[at] = ranked;
    if (found == best.size()) limit = best.back().key;
  }
  return found;
}

uint16_t Assigner::BestOpen(uint64_t shard_hash) const {
  Ranked best[1];
  return Rank(shard_hash, /*only_open=*/true, best) == 0 ? kNobody
                                                         : best[0].worker;
}

// Sets the owners: `first`, then the others of `ranked`, in order. The caller
// updates the loads.
void Assigner::SetOwners(uint32_t shard, uint16_t first,
                         std::span<const Ranked> ranked) {
  uint16_t* owners = &owners_[size_t{shard} * owners_per_shard_];
  double worst = Key(ShardHash(shard), first);
  uint32_t count = 0;
  owners[count++] = first;
  for (const Ranked& next : ranked) {
    if (count == owners_per_shard_) break;
    if (next.worker == first) continue;
    owners[count++] = next.worker;
    worst = std::max(worst, next.key);
  }
  worst_keys_[shard] = RoundUp(worst);
}

// Ranks the other owners anew if the primary owner stays.
void Assigner::Refill(uint32_t shard) {
  Ranked best[kOwnersPerShard + 1];
  const size_t found =
      Rank(ShardHash(shard), false, std::span(best, owners_per_shard_ + 1));
  SetOwners(shard, owners_[size_t{shard} * owners_per_shard_],
            std::span(best, found));
}

// Inserts `joiners` into the owners of a shard that has all its owners.
void Assigner::Offer(uint32_t shard, std::span<const uint16_t> joiners) {
  const uint64_t hash = ShardHash(shard);
  uint16_t* owners = &owners_[size_t{shard} * owners_per_shard_];
  for (uint16_t joiner : joiners) {
    const double v = ToUnit(Mix(hash ^ hashes_[joiner]));
    if (v * inverse_weights_[joiner] >= worst_keys_[shard]) continue;
    Ranked ranked[kOwnersPerShard + 1];
    size_t count = 0;
    const auto add = [&](Ranked next) {
      size_t at = count++;
      for (; at > 0 && next < ranked[at - 1]; --at) ranked[at] = ranked[at - 1];
      ranked[at] = next;
    };
    const Ranked offer{-std::log1p(-v) * inverse_weights_[joiner], joiner};
    add(offer);
    for (uint32_t i = 0; i < owners_per_shard_; ++i)
      if (owners[i] != joiner) add({Key(hash, owners[i]), owners[i]});
    uint16_t first = owners[0];
    const bool better = offer < Ranked{Key(hash, first), first};
    if (better && loads_[joiner] < limits_[joiner]) {
      --loads_[first];
      ++loads_[joiner];
      first = joiner;
    }
    SetOwners(shard, first, std::span(ranked, count));
  }
}

// Gives owners to a shard that has no primary owner.
void Assigner::Place(uint32_t shard) {
  const uint64_t hash = ShardHash(shard);
  Ranked best[kCandidates];
  const size_t found = Rank(hash, false, best);
  uint16_t first = kNobody;
  for (size_t i = 0; i < found && first == kNobody; ++i)
    if (loads_[best[i].worker] < limits_[best[i].worker])
      first = best[i].worker;
  if (first == kNobody) first = BestOpen(hash);
  ++loads_[first];
  SetOwners(shard, first, std::span(best, found));
}

void Assigner::ShedOverload() {
  std::vector<std::vector<std::pair<double, uint32_t>>> held(workers_.size());
  bool any = false;
  for (size_t i = 0; i < workers_.size(); ++i)
    any = any || loads_[i] > limits_[i];
  if (!any) return;
  for (uint32_t shard = 0; shard < num_shards_; ++shard) {
    const uint16_t first = owners_[size_t{shard} * owners_per_shard_];
    if (loads_[first] > limits_[first])
      held[first].emplace_back(Key(ShardHash(shard), first), shard);
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    std::sort(held[i].rbegin(), held[i].rend());
    for (size_t k = 0; loads_[i] > limits_[i]; ++k) {
      const uint32_t shard = held[i][k].second;
      --loads_[i];
      Place(shard);
    }
  }
}

Assigner::Change Assigner::Replace(std::vector<AssignedWorker> next) {
  std::sort(next.begin(), next.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  Change change;
  change.renumbered.assign(workers_.size(), kNobody);
  change.reweighted.assign(next.size(), false);
  size_t old = 0;
  for (size_t i = 0; i < next.size(); ++i) {
    while (old < workers_.size() && workers_[old].name < next[i].name) ++old;
    const bool known =
        old < workers_.size() && workers_[old].name == next[i].name;
    if (known) change.renumbered[old] = static_cast<uint16_t>(i);
    change.reweighted[i] = known && workers_[old].weight != next[i].weight;
    if (!known || change.reweighted[i])
      change.joiners.push_back(static_cast<uint16_t>(i));
    change.members_changed = change.members_changed || !known;
    change.weights_changed = change.weights_changed || change.reweighted[i];
  }
  change.members_changed =
      change.members_changed || workers_.size() != next.size();
  workers_ = std::move(next);

  double total = 0;
  for (const AssignedWorker& worker : workers_) total += worker.weight;
  hashes_.clear();
  inverse_weights_.clear();
  limits_.clear();
  for (const AssignedWorker& worker : workers_) {
    hashes_.push_back(HashText(worker.name));
    inverse_weights_.push_back(1 / worker.weight);
    const double fair = num_shards_ * worker.weight / total;
    limits_.push_back(static_cast<uint32_t>(std::ceil(kLoadBound * fair)));
  }
  loads_.assign(workers_.size(), 0);
  return change;
}

Assigner::Left Assigner::KeepOwners(const Change& change,
                                    std::span<const uint16_t> before,
                                    uint32_t stride) {
  const uint32_t kept = std::min(stride, owners_per_shard_);
  Left left;
  for (uint32_t shard = 0; shard < num_shards_; ++shard) {
    uint16_t* now = &owners_[size_t{shard} * owners_per_shard_];
    bool gap = kept < owners_per_shard_, stale = false;
    for (uint32_t i = 0; i < kept; ++i) {
      now[i] = change.renumbered[before[size_t{shard} * stride + i]];
      if (now[i] == kNobody)
        gap = true;
      else if (change.weights_changed)
        stale = stale || change.reweighted[now[i]];
    }
    if (now[0] == kNobody) {
      left.unowned.push_back(shard);
      continue;
    }
    ++loads_[now[0]];
    if (gap || stale) left.gaps.push_back(shard);
  }
  return left;
}

void Assigner::RefillAll(std::span<const uint32_t> gaps) {
  for (const uint32_t shard : gaps) Refill(shard);
}

void Assigner::OfferAll(std::span<const uint16_t> joiners) {
  if (joiners.empty()) return;
  for (uint32_t shard = 0; shard < num_shards_; ++shard)
    if (owners_[size_t{shard} * owners_per_shard_] != kNobody)
      Offer(shard, joiners);
}

void Assigner::PlaceAll(std::span<const uint32_t> unowned) {
  for (const uint32_t shard : unowned) Place(shard);
}

// For example shards 0, 1 and 2 and the workers a, b and c, of weight 1, whose
// limit is ⌈1.05 · 3 / 3⌉ = 2; then c leaves and d joins. Owners by shard, the
// primary one first:
//
//                  0      1      2
//   before         a b c  b c a  c a b
//   1 KeepOwners   a b -  b - a  - a b   2 is unowned;  0 and 1 have gaps
//   2 RefillAll    a b d  b d a  - a b   ranked anew after a and b
//   3 OfferAll     a b d  d b a  - a b   d is the best for 1, and has room
//   4 PlaceAll     a b d  d b a  d a b   d is the best for 2, and has room
//   5 ShedOverload                       no worker is over its limit
//
// A limit falls when a worker joins or another one's weight grows. A worker
// that holds more than its limit gives up the shards that rank it worst.
bool Assigner::SetWorkers(std::span<const AssignedWorker> workers) {
  std::vector<AssignedWorker> next(workers.begin(), workers.end());
  const std::vector<uint16_t> before = std::move(owners_);
  const uint32_t stride = owners_per_shard_;
  const Change change = Replace(std::move(next));
  owners_per_shard_ =
      static_cast<uint32_t>(std::min<size_t>(kOwnersPerShard, workers_.size()));
  owners_.assign(size_t{num_shards_} * owners_per_shard_, kNobody);
  if (workers_.empty()) return change.members_changed;

  const Left left = KeepOwners(change, before, stride);
  RefillAll(left.gaps);
  OfferAll(change.joiners);
  PlaceAll(left.unowned);
  ShedOverload();
  return change.members_changed || owners_ != before;
}

}  // namespace leat
