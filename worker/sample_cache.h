// SPDX-License-Identifier: Apache-2.0
//
// SampleCache: stored samples in memory, by dataset and record, within a limit
// of bytes.
//
// Which records are kept is worker/source/storage/cache_shares.h's rule: of a
// dataset those of the lowest ranks that fit, whatever order they come in, and
// none is given up while jobs read the dataset, but for lower ranks and for
// other datasets' shares. Records of shards that this worker does not own any
// more go first, as soon as room is wanted.
//
// A dataset is known by a digest of what its records are (their files'
// identities included) and of what its reader takes of them. So a file that
// changed is never served for the one that was indexed, nor the reverse.
//
// What an entry costs is all that it holds, and 192 bytes: a value may be more
// than the encoded sample, as long as its cost says so.
//
// Reads are single-flight: of several threads that miss the same record one
// reads, the others wait for it, as long as storage lets it take, and get the
// same record or the same error. Errors are not kept.
// Thread-safe: hits take the lock of a slice of the records only, and none is
// held while reading or freeing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/mutex.h"
#include "worker/source/storage/cache_shares.h"
#include "worker/stored_sample.h"

namespace leat::worker {

class SampleCache {
 public:
  using ReadFunction = absl::FunctionRef<absl::StatusOr<StoredSample>()>;

  static constexpr uint64_t kEntryBytes = 192;  // beside its value
  static constexpr size_t kMaxDatasets = 1024;  // that nobody holds

  // A dataset that is read through the cache, by whoever holds it.
  class Dataset;
  using DatasetPtr = std::shared_ptr<Dataset>;

  struct Record {
    uint64_t number = 0;
    uint32_t shard = 0;
  };

  // `limit_bytes` 0: keeps nothing, but reads are still single-flight. `uses`
  // null: no dataset is known to be in use. Both outlive it.
  explicit SampleCache(uint64_t limit_bytes, DatasetUses* uses = nullptr,
                       const Clock& clock = Clock::Real());
  ~SampleCache();

  // `key`: as above. `id`: by which SetOwned names the dataset. The datasets of
  // this cache; it outlives their uses.
  DatasetPtr Open(const Digest& key, const std::string& id,
                  const std::string& name);

  // Jobs read the dataset while what is returned lives. Null without `uses`.
  std::shared_ptr<const void> BeginUse(const DatasetPtr& dataset) const;

  // The record: kept, or what `read` returns. `keep`: whether a record that was
  // read may stay. May wait for another thread's read.
  absl::StatusOr<StoredSample> Get(const DatasetPtr& dataset,
                                   const Record& record, bool keep,
                                   ReadFunction read);

  // Whether it is kept, or on its way: Get would read nothing. Counts as
  // nothing.
  bool Contains(const DatasetPtr& dataset, uint64_t record) const;

  // This worker's shards of a dataset: owned[shard]; those beyond its size are
  // owned.
  void SetOwned(const std::string& id, const std::vector<bool>& owned);

  struct Stats {
    uint64_t bytes = 0;
    uint64_t records = 0;
    uint64_t hits = 0;
    uint64_t misses = 0;  // reads
    std::vector<CachedDatasetStats> datasets;
  };
  Stats stats() const;
  uint64_t limit_bytes() const { return limit_bytes_; }

 private:
  struct Kept;
  struct Flight;
  struct Slice;
  struct Key {
    uint64_t dataset = 0;
    uint64_t record = 0;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H state, const Key& key) {
      return H::combine(std::move(state), key.dataset, key.record);
    }
  };
  using Gone = std::vector<StoredSample>;

  Slice& SliceOf(const Key& key) const;
  void Keep(Dataset& dataset, const Record& record, const StoredSample& sample,
            Gone* gone);
  bool MakeRoom(Dataset& dataset, uint64_t rank, uint64_t bytes, Gone* gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropTop(Dataset& dataset, Gone* gone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropNotOwned(Dataset& dataset, Gone* gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Take(const Dataset& dataset, const Kept& kept, Gone* gone);
  void ForgetSome(Gone* gone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const uint64_t limit_bytes_;
  DatasetUses* const uses_;
  const Clock& clock_;
  const std::vector<std::unique_ptr<Slice>> slices_;
  mutable Mutex mu_;  // taken before a slice's
  CacheShares shares_ ABSL_GUARDED_BY(mu_);
  uint64_t next_number_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<Digest, DatasetPtr> datasets_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::worker
