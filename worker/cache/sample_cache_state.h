// SPDX-License-Identifier: Apache-2.0
//
// SampleCacheState: the data of a SampleCache: records in slices, by record, so
// that hits of many threads do not contend; and its datasets, which list their
// kept records. A FormShelf keeps its forms beside these records.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/mutex.h"
#include "worker/cache/sample_dataset.h"
#include "worker/image/jpeg/forms/keeper.h"
#include "worker/sample/stored_sample.h"
#include "worker/source/disk_cache/cache_shares.h"

namespace leat::worker {

struct SampleCacheState {
  struct Key {
    uint64_t dataset = 0;
    uint64_t record = 0;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H state, const Key& key) {
      return H::combine(std::move(state), key.dataset, key.record);
    }
  };

  // A record that is kept. Guarded by its slice.
  struct Entry {
    // The forms of one of its files.
    struct File {
      size_t field = 0;   // whose bytes they were made of
      KeptForm form;      // has none if its pointer is nullptr
      FormKinds refused;  // kinds that the file refused
      // True if it has a form of the kind, or a better one.
      bool Has(JpegFormKind kind) const {
        return form.form != nullptr &&
               (form.kind > kind || (form.kind == kind && form.whole));
      }
    };

    // Returns the field whose bytes these are; nullopt: none.
    std::optional<size_t> FieldOf(std::span<const std::byte> file) const;
    // Returns what is known of the field's file.
    const File& Of(size_t field) const;
    File& At(size_t field);
    // Returns a file with a form of a whole JPEG; nullptr: none.
    const File* OfJpeg() const;

    StoredSample sample;
    std::vector<File> files;  // of which something is known
  };
  // Entries that are no longer kept; to be freed without a lock.
  using Gone = std::vector<Entry>;

  // A read in progress, shared by the threads that wait for it. Guarded by its
  // slice.
  struct Flight {
    bool done = false;
    bool keep = false;  // a thread that wants it may keep it
    absl::StatusOr<StoredSample> result = absl::UnknownError("not read");
  };

  struct Slice {
    Mutex mu;
    CondVar landed;
    absl::flat_hash_map<Key, Entry> kept ABSL_GUARDED_BY(mu);
    absl::flat_hash_map<Key, std::shared_ptr<Flight>> flights
        ABSL_GUARDED_BY(mu);
  };

  SampleCacheState(uint64_t limit, DatasetUses* dataset_uses,
                   const Clock& real_clock);

  Slice& SliceOf(const Key& key) const {
    return *slices[absl::Hash<Key>{}(key) % slices.size()];
  }
  bool IsLiving(const SampleDataset& dataset) const {
    return uses == nullptr || uses->Of(dataset.key).lives;
  }
  // Takes a record out of its slice, with its form.
  void Take(SampleDataset& dataset, const KeptRecord& kept, Gone* gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Takes out records of shards that are not owned, for datasets whose owners
  // have changed since the last time, but not after `changed_until`.
  void DropNotOwned(MonotonicTime changed_until, Gone* gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  const uint64_t limit_bytes;
  DatasetUses* const uses;
  const Clock& clock;
  const std::vector<std::unique_ptr<Slice>> slices;
  mutable Mutex mu;  // taken before a slice's
  CacheShares shares ABSL_GUARDED_BY(mu);
  uint64_t form_bytes ABSL_GUARDED_BY(mu) = 0;
  uint64_t next_number ABSL_GUARDED_BY(mu) = 1;
  std::map<Digest, std::shared_ptr<SampleDataset>> datasets ABSL_GUARDED_BY(mu);
  // As they were set, by the dataset's id.
  absl::flat_hash_map<std::string, std::vector<bool>> owned ABSL_GUARDED_BY(mu);
};

}  // namespace leat::worker
