// SPDX-License-Identifier: Apache-2.0
#include "worker/sample_cache.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/mutex.h"
#include "core/status.h"

namespace leat::worker {
namespace {

constexpr uint64_t kSliceBytes = 32ull << 20;  // at least, but for one slice
constexpr uint64_t kMaxSlices = 16;
constexpr uint64_t kEntryOverhead = 160;  // a record's cost beside its bytes
constexpr uint8_t kMaxHits = 3;

// A read in progress, shared by those who wait for it. Guarded by the slice.
struct Flight {
  bool done = false;
  absl::StatusOr<StoredSample> result = absl::UnknownError("not read");
};

}  // namespace

class SampleCache::Slice {
 public:
  explicit Slice(uint64_t limit_bytes) : limit_(limit_bytes) {}

  absl::StatusOr<StoredSample> Get(const CacheKey& key, bool keep,
                                   ReadFunction read) {
    std::shared_ptr<Flight> flight;
    {
      MutexLock lock(&mu_);
      if (const auto it = entries_.find(key); it != entries_.end()) {
        it->second.hits = std::min<uint8_t>(it->second.hits + 1, kMaxHits);
        ++hits_;
        return it->second.sample;
      }
      if (const auto it = flights_.find(key); it != flights_.end()) {
        flight = it->second;
        while (!flight->done) landed_.Wait(&mu_);
        ++hits_;
        return flight->result;
      }
      flight = std::make_shared<Flight>();
      flights_.emplace(key, flight);
      ++misses_;
    }
    absl::StatusOr<StoredSample> sample = read();
    MutexLock lock(&mu_);
    flight->done = true;
    flight->result = sample;
    flights_.erase(key);
    if (sample.ok() && keep) Insert(key, *sample);
    landed_.NotifyAll();
    return sample;
  }

  bool Contains(const CacheKey& key) const {
    MutexLock lock(&mu_);
    return entries_.contains(key) || flights_.contains(key);
  }

  void AddTo(Stats& stats) const {
    MutexLock lock(&mu_);
    stats.bytes += bytes_;
    stats.records += entries_.size();
    stats.hits += hits_;
    stats.misses += misses_;
  }

 private:
  struct Entry {
    StoredSample sample;
    uint64_t bytes = 0;
    uint8_t hits = 0;  // since it entered its queue, at most kMaxHits
    bool main = false;
  };

  void Insert(const CacheKey& key, const StoredSample& sample)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const uint64_t bytes = sample.bytes() + kEntryOverhead;
    if (bytes > limit_ / 2) return;
    while (bytes_ + bytes > limit_) EvictOne();
    const bool main = ghosts_.contains(key);
    entries_.emplace(
        key, Entry{.sample = sample, .bytes = bytes, .hits = 0, .main = main});
    bytes_ += bytes;
    if (main) {
      main_.push_back(key);
    } else {
      small_.push_back(key);
      small_bytes_ += bytes;
    }
  }

  // Frees one record. REQUIRES: there is one.
  void EvictOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    while (true) {
      const bool from_small =
          !small_.empty() && (main_.empty() || small_bytes_ > limit_ / 10);
      std::deque<CacheKey>& queue = from_small ? small_ : main_;
      const CacheKey key = queue.front();
      queue.pop_front();
      Entry& entry = entries_.find(key)->second;
      if (from_small) small_bytes_ -= entry.bytes;
      if (entry.hits > 0) {
        entry.hits = from_small ? 0 : entry.hits - 1;
        entry.main = true;
        main_.push_back(key);
        continue;
      }
      if (from_small) Remember(key);
      bytes_ -= entry.bytes;
      entries_.erase(key);
      return;
    }
  }

  // Keeps the key of a record that left the small queue, for about as many
  // records as are kept.
  void Remember(const CacheKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    ghost_order_.push_back(key);
    ++ghosts_[key];
    while (ghost_order_.size() > entries_.size() + 16) {
      const auto it = ghosts_.find(ghost_order_.front());
      if (--it->second == 0) ghosts_.erase(it);
      ghost_order_.pop_front();
    }
  }

  const uint64_t limit_;
  mutable Mutex mu_;
  CondVar landed_;
  absl::flat_hash_map<CacheKey, Entry> entries_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<CacheKey, std::shared_ptr<Flight>> flights_
      ABSL_GUARDED_BY(mu_);
  std::deque<CacheKey> small_ ABSL_GUARDED_BY(mu_);
  std::deque<CacheKey> main_ ABSL_GUARDED_BY(mu_);
  std::deque<CacheKey> ghost_order_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<CacheKey, uint32_t> ghosts_
      ABSL_GUARDED_BY(mu_);  // key -> times in ghost_order_
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t small_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t hits_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t misses_ ABSL_GUARDED_BY(mu_) = 0;
};

SampleCache::SampleCache(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {
  const uint64_t slices =
      std::clamp<uint64_t>(limit_bytes / kSliceBytes, 1, kMaxSlices);
  for (uint64_t i = 0; i < slices; ++i)
    slices_.push_back(std::make_unique<Slice>(limit_bytes / slices));
}

SampleCache::~SampleCache() = default;

SampleCache::Slice& SampleCache::SliceOf(const CacheKey& key) const {
  return *slices_[absl::Hash<CacheKey>{}(key) % slices_.size()];
}

absl::StatusOr<StoredSample> SampleCache::Get(const CacheKey& key, bool keep,
                                              ReadFunction read) {
  return SliceOf(key).Get(key, keep, read);
}

bool SampleCache::Contains(const CacheKey& key) const {
  return SliceOf(key).Contains(key);
}

SampleCache::Stats SampleCache::stats() const {
  Stats stats;
  for (const auto& slice : slices_) slice->AddTo(stats);
  return stats;
}

}  // namespace leat::worker
