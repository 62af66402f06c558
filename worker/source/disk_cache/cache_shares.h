// SPDX-License-Identifier: Apache-2.0
//
// CacheShares: decides which records a cache keeps for each dataset, and which
// dataset gives up bytes when it is full. Memory and disk follow the same
// rules.
//
//   rank      a hash of the record, keyed by its dataset; it depends neither on
//             when the record came nor on who requested it. Each dataset keeps
//             the records of the lowest ranks that fit, so that what is kept
//             depends on neither order nor worker, and all owners of a shard
//             keep the same.
//   highest   the highest rank that is admitted now. It falls when records are
//             given up for lack of room, and rises when others leave room.
//   share     the bytes that a living dataset (dataset_uses.h) may always have
//             beside others, by the cost per second of reading its records,
//             with a floor. Others may use what a dataset does not need.
//
// Every epoch visits each record once, so no rule can have more hits than there
// are kept records; a rule based on recency keeps the records that were just
// used, which are the last to come again. Bytes are given up
//   1. by datasets that do not live, the one whose last use ended first;
//   2. by forms of records (`tier`), the highest tier first, to records and to
//      forms of a lower tier: so forms get what records leave;
//   3. by the dataset that is most over its share, to one below its own; forms
//      of a tier are shared evenly;
//   4. otherwise by the dataset that wants them: its ranks above the record's
//      are given up, or the record is not kept.
//
// Thread-compatible: the cache's lock guards it and its datasets, except their
// atomics.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/hash.h"
#include "worker/source/disk_cache/dataset_uses.h"

namespace leat::worker {

// The statistics of a dataset that people are shown.
struct CachedFormStats {  // for its JPEG files (worker/image/jpeg/forms)
  std::string_view form;
  uint64_t bytes = 0;
  uint64_t entries = 0;
  uint64_t hits = 0;  // decodes by it
  uint64_t saved_ms = 0;
};
struct CachedDatasetStats {
  std::string name;
  std::string id{};    // as in CachedDataset
  uint64_t bytes = 0;  // including forms
  uint64_t entries = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  std::vector<CachedFormStats> forms;
};

// A dataset in one cache.
struct CachedDataset {
  static constexpr uint64_t kAllRanks = std::numeric_limits<uint64_t>::max();

  CachedDataset(const Digest& key, std::string name)
      : key(key), name(std::move(name)), used_as(key) {}
  virtual ~CachedDataset() = default;
  CachedDataset(const CachedDataset&) = delete;
  CachedDataset& operator=(const CachedDataset&) = delete;

  // Adds what the cache keeps beside the entries. Called with the cache's lock.
  virtual void Describe(CachedDatasetStats*) const {}

  const Digest key;
  std::atomic<uint64_t> hits{0};
  std::atomic<uint64_t> misses{0};
  std::atomic<uint64_t> read_ns{0};  // time spent reading what was missed

  // Guarded by the cache's lock.
  std::string name;  // for people
  // The coordinator's id, if the entries are records; empty: they are ranges of
  // objects.
  std::string id;
  // A cache may have forms of a dataset's records as separate datasets. Their
  // tier is above 0, which is that of records.
  int tier = 0;
  std::string_view form;  // if the tier is above 0: shown to people
  Digest used_as;         // the dataset's key in DatasetUses
  uint64_t bytes = 0;
  uint64_t entries = 0;
  uint64_t highest = kAllRanks;
  double weight = 0;  // 0: not measured yet
  uint64_t asked_before = 0;
};

// Returns an evenly distributed number that depends only on the record and its
// dataset.
uint64_t RankOf(const Digest& dataset, uint64_t record);

class CacheShares {
 public:
  static constexpr Duration kPeriod = std::chrono::minutes(1);

  // `margin`: free bytes that let `highest` rise; more than a dataset gives up
  // at a time, so that it does not take it back at once. `uses` nullptr: no
  // dataset is known to live. All outlive it.
  CacheShares(uint64_t limit_bytes, uint64_t margin, const DatasetUses* uses,
              const Clock& clock);

  void Add(CachedDataset* dataset) { datasets_.push_back(dataset); }
  void Remove(CachedDataset* dataset);

  // The dataset has gained, or lost, `entries` entries of `bytes` bytes.
  void Grew(CachedDataset* dataset, uint64_t bytes, uint64_t entries = 1);
  void Shrank(CachedDataset* dataset, uint64_t bytes, uint64_t entries = 1);
  // The dataset gave up `rank` and all above it for lack of room.
  static void Fell(CachedDataset* dataset, uint64_t rank) {
    const uint64_t below = rank == 0 ? 0 : rank - 1;
    if (below < dataset->highest) dataset->highest = below;
  }

  bool HasRoom(uint64_t bytes) const {
    return bytes <= limit_ && bytes_ <= limit_ - bytes;
  }
  // True if a record of this rank and size may be kept, if room is made.
  bool Admits(CachedDataset* dataset, uint64_t rank, uint64_t bytes);
  // Returns the dataset that gives up bytes for `dataset`, which wants `bytes`;
  // it may be itself. Another one has some to give.
  CachedDataset* Giver(CachedDataset* dataset, uint64_t bytes);

  uint64_t limit_bytes() const { return limit_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t entries() const { return entries_; }
  // Ordered by bytes, most first; forms follow their dataset.
  std::vector<CachedDatasetStats> stats() const;
  // These count records.
  uint64_t hits() const;
  uint64_t misses() const;

 private:
  struct Living {
    CachedDataset* dataset;
    double share;
  };
  bool Lives(const CachedDataset& dataset) const;
  // Returns the living dataset whose forms give way to `dataset`; nullptr if
  // none.
  CachedDataset* FormGiver(const CachedDataset& dataset, uint64_t bytes) const;
  // Returns the living datasets of records, with their shares, including
  // `wanting` if it lives.
  std::vector<Living> SharesFor(CachedDataset* wanting);
  void Measure();

  const uint64_t limit_;
  const uint64_t margin_;
  const DatasetUses* const uses_;
  const Clock& clock_;
  std::vector<CachedDataset*> datasets_;
  uint64_t bytes_ = 0;
  uint64_t entries_ = 0;
  MonotonicTime period_began_;
  // These count for datasets that were removed.
  uint64_t hits_before_ = 0, misses_before_ = 0;
};

}  // namespace leat::worker
