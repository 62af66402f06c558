// SPDX-License-Identifier: Apache-2.0
//
// CacheShares: which records of which datasets a cache keeps, and who gives up
// bytes when it is full. Memory and disk follow the same rules.
//
//   rank      a hash of the record, keyed by its dataset: not of when it came,
//             nor of who asks. Of a dataset those of the lowest ranks are kept
//             that fit, so that what is kept depends on neither order nor
//             worker, and all owners of a shard keep the same.
//   highest   the highest rank that is admitted now. It falls when records are
//             given up for want of room, and rises when others leave room.
//   share     what a dataset that lives (dataset_uses.h) may always have beside
//             others: by what reading its records costs a second, with a
//             floor. What one does not need others may use.
//
// Every epoch visits each record once, so that as many hits as records are kept
// is all that any rule can have; a rule that goes by recency keeps what has
// just been used, which is what comes last again. Bytes are given up
//   1. by datasets that do not live, the one whose last use ended first;
//   2. by forms of records (`tier`), the highest tier first, to records and to
//      forms of a lower tier: so forms have what records leave;
//   3. by the dataset that is most over its share, to one below its own; forms
//      of a tier are shared evenly;
//   4. else by the very dataset that wants them: ranks above the record's go,
//      or it is not kept.
//
// Thread-compatible: the cache's lock guards it, and all but the atomics of its
// datasets.
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

// People are shown this of a dataset.
struct CachedFormStats {  // of its JPEG files (worker/image/jpeg_forms)
  std::string_view form;
  uint64_t bytes = 0;
  uint64_t entries = 0;
  uint64_t hits = 0;  // decodes by it
  uint64_t saved_ms = 0;
};
struct CachedDatasetStats {
  std::string name;
  std::string id{};    // as CachedDataset's
  uint64_t bytes = 0;  // forms included
  uint64_t entries = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  std::vector<CachedFormStats> forms;
};

// A dataset, as one cache sees it.
struct CachedDataset {
  static constexpr uint64_t kAllRanks = std::numeric_limits<uint64_t>::max();

  CachedDataset(const Digest& key, std::string name)
      : key(key), name(std::move(name)), used_as(key) {}
  virtual ~CachedDataset() = default;
  CachedDataset(const CachedDataset&) = delete;
  CachedDataset& operator=(const CachedDataset&) = delete;

  // Adds what the cache keeps beside the entries. With the cache's lock.
  virtual void Describe(CachedDatasetStats*) const {}

  const Digest key;
  std::atomic<uint64_t> hits{0};
  std::atomic<uint64_t> misses{0};
  std::atomic<uint64_t> read_ns{0};  // that reading what was missed took

  // Guarded by the cache's lock.
  std::string name;  // for people
  // Of the coordinator, if the entries are records; empty: they are ranges of
  // objects.
  std::string id;
  // A cache may have forms of a dataset's records as datasets of their own.
  // Their tier is above 0, which is that of records.
  int tier = 0;
  std::string_view form;  // of a tier above 0: what people are shown
  Digest used_as;         // the dataset's key, as DatasetUses knows it
  uint64_t bytes = 0;
  uint64_t entries = 0;
  uint64_t highest = kAllRanks;
  double weight = 0;  // 0: not measured yet
  uint64_t asked_before = 0;
};

// A number of a record that depends on its dataset and itself only, evenly
// spread.
uint64_t RankOf(const Digest& dataset, uint64_t record);

class CacheShares {
 public:
  static constexpr Duration kPeriod = std::chrono::minutes(1);

  // `margin`: free bytes that let `highest` rise; more than what a dataset
  // gives up at a time, so that it does not take it back at once. `uses` null:
  // no dataset is known to live. All outlive it.
  CacheShares(uint64_t limit_bytes, uint64_t margin, const DatasetUses* uses,
              const Clock& clock);

  void Add(CachedDataset* dataset) { datasets_.push_back(dataset); }
  void Remove(CachedDataset* dataset);

  // That the dataset has so many entries more, or fewer.
  void Grew(CachedDataset* dataset, uint64_t bytes, uint64_t entries = 1);
  void Shrank(CachedDataset* dataset, uint64_t bytes, uint64_t entries = 1);
  // The dataset gave up `rank` and all above it for want of room.
  static void Fell(CachedDataset* dataset, uint64_t rank) {
    const uint64_t below = rank == 0 ? 0 : rank - 1;
    if (below < dataset->highest) dataset->highest = below;
  }

  bool HasRoom(uint64_t bytes) const {
    return bytes <= limit_ && bytes_ <= limit_ - bytes;
  }
  // Whether a record of this rank and size may be kept, if room is made.
  bool Admits(CachedDataset* dataset, uint64_t rank, uint64_t bytes);
  // Who gives up bytes for `dataset`, which wants so many: it may be itself.
  // Another one has some to give.
  CachedDataset* Giver(CachedDataset* dataset, uint64_t bytes);

  uint64_t limit_bytes() const { return limit_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t entries() const { return entries_; }
  // Those of most bytes first, forms with the dataset that they are of.
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
  // Returns the living dataset whose forms give way to `dataset`; null: none.
  CachedDataset* FormGiver(const CachedDataset& dataset, uint64_t bytes) const;
  // Records that live, with their shares. `wanting` is among them if it lives.
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
