// SPDX-License-Identifier: Apache-2.0
//
// SampleCache: stored samples in memory, by dataset and record, within a limit
// of bytes.
//
// Which records are kept is worker/source/disk_cache/cache_shares.h's rule: of
// a dataset those of the lowest ranks that fit, whatever order they come in,
// and none is given up while jobs read the dataset, but for lower ranks and for
// other datasets' shares. Records of shards that this worker does not own any
// more go first, as soon as room is wanted for records, or after a minute for
// forms.
//
// A dataset is known by a digest of what its records are (their files'
// identities included) and of what its reader takes of them. So a file that
// changed is never served for the one that was indexed, nor the reverse.
//
// What an entry costs is all that it holds, and 192 bytes.
//
// Beside a record may be kept a form of its JPEG (form_shelf.h).
//
// Reads are single-flight: of several threads that miss the same record one
// reads, the others wait for it, as long as storage lets it take, and get the
// same record or the same error. Errors are not kept.
// Thread-safe: hits take the lock of a slice of the records only, and none is
// held while reading or freeing.
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

  static constexpr uint64_t kEntryBytes = 192;  // beside its value
  static constexpr size_t kMaxDatasets = 1024;  // that nobody holds

  // A dataset that is read through the cache, by whoever holds it.
  using DatasetPtr = std::shared_ptr<SampleDataset>;

  struct Record {
    uint64_t number = 0;
    uint32_t shard = 0;
  };

  // `limit_bytes` 0: keeps nothing, but reads are still single-flight. `uses`
  // null: no dataset is known to be in use. `forms`: what may be kept beside
  // records. `decode_clock`: by which decodes are measured; null: `clock`. What
  // is pointed to outlives it.
  explicit SampleCache(uint64_t limit_bytes, DatasetUses* uses = nullptr,
                       const Clock& clock = Clock::Real(), FormKinds forms = {},
                       const Clock* decode_clock = nullptr);
  ~SampleCache();

  // `key`: as above. `id`: by which SetOwned names the dataset. `records`: how
  // many it has; 0: not known. The datasets of this cache; it outlives their
  // uses.
  DatasetPtr Open(const Digest& key, const std::string& id,
                  const std::string& name, uint64_t records = 0);

  // Jobs read the dataset while what is returned lives. Null without `uses`.
  std::shared_ptr<const void> BeginUse(const DatasetPtr& dataset) const;

  // Returns what tells how often the dataset's records will be decoded.
  static const std::shared_ptr<FormHorizon>& HorizonOf(
      const DatasetPtr& dataset);

  // The record: kept, or what `read` returns. `keep`: whether a record that was
  // read may stay. May wait for another thread's read.
  absl::StatusOr<StoredSample> Get(const DatasetPtr& dataset,
                                   const Record& record, bool keep,
                                   ReadFunction read);

  // Keeps a record that nobody has asked for. False: there is no room for it,
  // or it is being read. Counts as nothing.
  bool Put(const DatasetPtr& dataset, const Record& record,
           const StoredSample& sample);

  // Whether it is kept, or on its way: Get would read nothing. Counts as
  // nothing.
  bool Contains(const DatasetPtr& dataset, uint64_t record) const;

  // The record as it is kept, with its form. nullopt: it is not kept. Counts as
  // nothing.
  std::optional<StoredSample> Find(const DatasetPtr& dataset,
                                   uint64_t record) const;

  // The forms beside the records.
  FormShelf& forms() { return forms_; }
  const FormShelf& forms() const { return forms_; }
  const Clock& clock() const { return state_.clock; }

  // This worker's shards of a dataset: owned[shard]; those beyond its size are
  // owned. Also of one that is opened later: shards are assigned when a dataset
  // is created, and it is opened for the first job.
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
