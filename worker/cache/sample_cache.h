// SPDX-License-Identifier: Apache-2.0
//
// SampleCache: stored samples in memory, by dataset and record, within a limit
// of bytes.
//
// The rule of worker/source/disk_cache/cache_shares.h decides which records are
// kept: for each dataset those of the lowest ranks that fit, whatever order
// they come in. While jobs read the dataset a record is given up only for lower
// ranks and for other datasets' shares. Records of shards that this worker does
// not own any more go first, as soon as records need room, or after a minute
// for forms.
//
// A dataset is identified by a digest of its records (their files' identities
// included) and of the parts that its reader takes of them. So a changed file
// is never served for the one that was indexed, nor the reverse.
//
// The cost of an entry is all that it holds, plus 192 bytes.
//
// Forms of its images may be kept beside a record (form_shelf.h).
//
// Reads are single-flight: if several threads miss the same record, one reads,
// and the others wait for it, as long as storage takes, and get the same record
// or the same error. Errors are not kept. Thread-safe: hits take only the lock
// of a slice of the records, and none is held while reading or freeing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/hash.h"
#include "worker/cache/form_horizon.h"
#include "worker/cache/form_shelf.h"
#include "worker/cache/sample_cache_state.h"
#include "worker/cache/sample_dataset.h"
#include "worker/image/jpeg/forms/keeper.h"
#include "worker/sample/stored_sample.h"
#include "worker/source/disk_cache/cache_shares.h"

namespace leat::worker {

class SampleCache {
 public:
  using ReadFunction = absl::FunctionRef<absl::StatusOr<StoredSample>()>;

  static constexpr uint64_t kEntryBytes = 192;  // in addition to its value
  static constexpr size_t kMaxDatasets = 1024;  // without a holder

  // A dataset that its holders read through the cache.
  using DatasetPtr = std::shared_ptr<SampleDataset>;

  struct Record {
    uint64_t number = 0;
    uint32_t shard = 0;
  };

  // `limit_bytes` 0: keeps nothing, but reads are still single-flight. `uses`
  // nullptr: no dataset is known to be in use. `forms`: the forms that may be
  // kept beside records. `decode_clock` measures decodes; nullptr: `clock`. The
  // objects pointed to outlive the cache.
  explicit SampleCache(uint64_t limit_bytes, DatasetUses* uses = nullptr,
                       const Clock& clock = Clock::Real(), FormKinds forms = {},
                       const Clock* decode_clock = nullptr);
  ~SampleCache();

  // Opens a dataset of this cache, which outlives its uses. `key`: as above.
  // `id`: the name that SetOwned uses. `records`: how many it has; 0: not
  // known.
  DatasetPtr Open(const Digest& key, const std::string& id,
                  const std::string& name, uint64_t records = 0);

  // Counts the dataset as read by jobs while the result exists. Returns nullptr
  // without `uses`.
  std::shared_ptr<const void> BeginUse(const DatasetPtr& dataset) const;

  // Returns the horizon, which estimates how often the dataset's records will
  // be decoded.
  static const std::shared_ptr<FormHorizon>& HorizonOf(
      const DatasetPtr& dataset);

  // Returns the record: the kept one, or the result of `read`. `keep`: whether
  // a record that was read may stay. May wait for another thread's read.
  absl::StatusOr<StoredSample> Get(const DatasetPtr& dataset,
                                   const Record& record, bool keep,
                                   ReadFunction read);

  // Keeps a record that was not requested. Returns false if there is no room
  // for it, or it is being read. Does not count as a hit or miss.
  bool Put(const DatasetPtr& dataset, const Record& record,
           const StoredSample& sample);

  // True if the record is kept, or being read, so that Get would read nothing.
  // Does not count as a hit or miss.
  bool Contains(const DatasetPtr& dataset, uint64_t record) const;

  // Returns the kept record, with a form of its JPEG; nullopt if it is not kept.
  // Does not count as a hit or miss.
  std::optional<StoredSample> Find(const DatasetPtr& dataset,
                                   uint64_t record) const;

  // Returns the forms beside the records.
  FormShelf& forms() { return forms_; }
  const FormShelf& forms() const { return forms_; }
  const Clock& clock() const { return state_.clock; }

  // Sets this worker's shards of a dataset: owned[shard]; those beyond its size
  // are owned. Also applies to a dataset that is opened later: shards are
  // assigned when a dataset is created, and it is opened for the first job.
  void SetOwned(const std::string& id, const std::vector<bool>& owned);

  struct Stats {
    uint64_t bytes = 0;  // forms included
    uint64_t records = 0;
    uint64_t hits = 0;
    uint64_t misses = 0;  // reads
    std::vector<CachedDatasetStats> datasets;
  };
  Stats stats() const;
  uint64_t limit_bytes() const { return state_.limit_bytes; }

 private:
  using Gone = SampleCacheState::Gone;

  void Keep(SampleDataset& dataset, const Record& record,
            const StoredSample& sample, Gone* gone);
  bool MakeRoom(SampleDataset& dataset, uint64_t rank, uint64_t bytes,
                Gone* gone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  void DropTop(SampleDataset& dataset, Gone* gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  void ForgetSome(Gone* gone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);

  SampleCacheState state_;
  FormShelf forms_;
};

}  // namespace leat::worker
