// SPDX-License-Identifier: Apache-2.0
//
// For example, two datasets of equal records share a cache of 100. A has 300
// requests per second and a miss takes 1 ms, B has 100 and 1 ms: their shares
// are 75 and 25. B was there first and has 100: it gives up its highest ranks,
// one by one, until A has 75. If A has 40 records in all, B keeps 60.
#include "worker/source/disk_cache/cache_shares.h"

#include <algorithm>
#include <cstring>

namespace leat::worker {
namespace {

// The least share, as a fraction of an equal one.
constexpr double kFloor = 0.25;

// The finalizer of splitmix64: each bit of the input changes about half of the
// output's bits.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t RankOf(const Digest& dataset, uint64_t record) {
  uint64_t keys[2];
  std::memcpy(keys, dataset.data(), sizeof keys);
  return Mix(Mix(record ^ keys[0]) ^ keys[1]);
}

CacheShares::CacheShares(uint64_t limit_bytes, uint64_t margin,
                         const DatasetUses* uses, const Clock& clock)
    : limit_(limit_bytes),
      margin_(margin),
      uses_(uses),
      clock_(clock),
      period_began_(clock.Now()) {}

void CacheShares::Remove(CachedDataset* dataset) {
  bytes_ -= dataset->bytes;
  entries_ -= dataset->entries;
  if (dataset->tier == 0) {
    hits_before_ += dataset->hits;
    misses_before_ += dataset->misses;
  }
  std::erase(datasets_, dataset);
}

void CacheShares::Grew(CachedDataset* dataset, uint64_t bytes,
                       uint64_t entries) {
  dataset->bytes += bytes;
  dataset->entries += entries;
  bytes_ += bytes;
  entries_ += entries;
}

void CacheShares::Shrank(CachedDataset* dataset, uint64_t bytes,
                         uint64_t entries) {
  dataset->bytes -= bytes;
  dataset->entries -= entries;
  bytes_ -= bytes;
  entries_ -= entries;
}

// Computes the cost per second of reading a dataset's records if none were
// kept, averaged half and half with the previous periods.
void CacheShares::Measure() {
  const MonotonicTime now = clock_.Now();
  if (now - period_began_ < kPeriod) return;
  const double seconds =
      std::chrono::duration<double>(now - period_began_).count();
  period_began_ = now;
  for (CachedDataset* const each : datasets_) {
    const uint64_t misses = each->misses, asked = each->hits + misses;
    const double read_ns = static_cast<double>(each->read_ns.load());
    const double cost = misses == 0 ? 0 : read_ns / static_cast<double>(misses);
    const double now_worth =
        static_cast<double>(asked - each->asked_before) / seconds * cost;
    each->asked_before = asked;
    each->weight =
        each->weight == 0 ? now_worth : (each->weight + now_worth) / 2;
  }
}

bool CacheShares::Lives(const CachedDataset& dataset) const {
  return uses_ != nullptr && uses_->Of(dataset.used_as).lives;
}

// Chooses the highest tier first, and within it the dataset that has the most.
// Within the wanting one's tier, only a dataset that has clearly more, so that
// two do not take the same bytes in turns.
CachedDataset* CacheShares::FormGiver(const CachedDataset& dataset,
                                      uint64_t bytes) const {
  CachedDataset* giver = nullptr;
  for (CachedDataset* const each : datasets_) {
    if (each == &dataset || each->bytes == 0 || each->tier == 0 ||
        each->tier < dataset.tier)
      continue;
    if (each->tier == dataset.tier &&
        each->bytes <= dataset.bytes + bytes + margin_)
      continue;
    if (giver == nullptr || each->tier > giver->tier ||
        (each->tier == giver->tier && each->bytes > giver->bytes))
      giver = each;
  }
  return giver;
}

std::vector<CacheShares::Living> CacheShares::SharesFor(
    CachedDataset* wanting) {
  Measure();
  std::vector<Living> living;
  double sum = 0;
  bool measured = true;
  for (CachedDataset* const each : datasets_) {
    if (each->tier > 0 || (each != wanting && each->bytes == 0)) continue;
    if (!Lives(*each)) continue;
    living.push_back({each, 0});
    sum += each->weight;
    measured = measured && each->weight > 0;
  }
  const double equal = 1.0 / static_cast<double>(living.size());
  for (Living& each : living) {
    const double part = measured ? each.dataset->weight / sum : equal;
    each.share =
        static_cast<double>(limit_) * (kFloor * equal + (1 - kFloor) * part);
  }
  return living;
}

CachedDataset* CacheShares::Giver(CachedDataset* dataset, uint64_t bytes) {
  CachedDataset* idle = nullptr;
  MonotonicTime ended = MonotonicTime::max();
  for (CachedDataset* const each : datasets_) {
    if (each == dataset || each->bytes == 0) continue;
    const auto standing =
        uses_ == nullptr ? DatasetUses::Standing() : uses_->Of(each->used_as);
    if (standing.lives || standing.ended > ended) continue;
    // Among equals, forms go first.
    if (idle != nullptr && standing.ended == ended && each->tier <= idle->tier)
      continue;
    idle = each;
    ended = standing.ended;
  }
  if (idle != nullptr) return idle;
  if (!Lives(*dataset)) return dataset;
  if (CachedDataset* const forms = FormGiver(*dataset, bytes)) return forms;
  if (dataset->tier > 0) return dataset;
  const std::vector<Living> living = SharesFor(dataset);
  const auto own =
      std::find_if(living.begin(), living.end(),
                   [&](const Living& each) { return each.dataset == dataset; });
  if (own == living.end() ||
      static_cast<double>(dataset->bytes + bytes) > own->share)
    return dataset;
  CachedDataset* giver = dataset;
  double most = 0;
  for (const Living& each : living) {
    const double over = static_cast<double>(each.dataset->bytes) - each.share;
    if (each.dataset == dataset || over <= most) continue;
    giver = each.dataset;
    most = over;
  }
  return giver;
}

bool CacheShares::Admits(CachedDataset* dataset, uint64_t rank,
                         uint64_t bytes) {
  if (bytes > limit_) return false;
  if (rank <= dataset->highest) return true;
  if (!HasRoom(bytes + margin_) && Giver(dataset, bytes) == dataset)
    return false;
  dataset->highest = rank;
  return true;
}

std::vector<CachedDatasetStats> CacheShares::stats() const {
  std::vector<CachedDatasetStats> stats;
  std::vector<Digest> shown;
  for (const CachedDataset* const each : datasets_) {
    if (each->tier > 0) continue;
    shown.push_back(each->key);
    stats.push_back({.name = each->name,
                     .id = each->id,
                     .bytes = each->bytes,
                     .entries = each->entries,
                     .hits = each->hits,
                     .misses = each->misses,
                     .forms = {}});
    each->Describe(&stats.back());
  }
  for (const CachedDataset* const each : datasets_) {
    if (each->tier == 0) continue;
    const auto of = std::find(shown.begin(), shown.end(), each->used_as);
    const auto at = static_cast<size_t>(of - shown.begin());
    if (of == shown.end()) {
      shown.push_back(each->used_as);
      stats.push_back({.name = each->name, .forms = {}});
    }
    stats[at].bytes += each->bytes;
    stats[at].forms.push_back({.form = each->form,
                               .bytes = each->bytes,
                               .entries = each->entries,
                               .hits = each->hits});
  }
  std::stable_sort(
      stats.begin(), stats.end(),
      [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return stats;
}

uint64_t CacheShares::hits() const {
  uint64_t sum = hits_before_;
  for (const CachedDataset* const each : datasets_)
    if (each->tier == 0) sum += each->hits;
  return sum;
}

uint64_t CacheShares::misses() const {
  uint64_t sum = misses_before_;
  for (const CachedDataset* const each : datasets_)
    if (each->tier == 0) sum += each->misses;
  return sum;
}

}  // namespace leat::worker
