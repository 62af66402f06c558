// SPDX-License-Identifier: Apache-2.0
//
// DiskCache: ranges of remote objects in a directory, within a bound of bytes;
// and other entries that its owner finds again by a key
// (worker/cache/disk_forms.h).
//
// It keeps what was read: a range of a version of an object, found again by the
// same range only. Readers request the same ranges every epoch (records,
// chunks, whole small objects), and nothing is fetched without a request.
//
// The rule of cache_shares.h decides which ranges are kept, as for samples in
// memory: for each dataset those of the lowest ranks that fit. Ranges are
// stored in segments by dataset and stratum, a run of ranks, with a data and an
// index file each. A full cache gives up the highest stratum of a dataset as a
// whole: one unlink, and no holes. A stratum is at most a 64th of the dataset,
// and an eighth of what is kept of it.
//
// Every range and every entry of an index has a CRC-32C. Nothing is synced to
// disk: after a crash, torn or missing entries are simply not found. An entry
// that cannot be read or is damaged is a miss. A failed write (a full disk)
// stops the keeping of new ranges until the process starts again. Segments of
// another version are removed at the start, and so are empty ones.
//
// One process at a time uses the directory. Only its user has access to it and
// its files, since they hold what that user may read. Thread-safe; no lock is
// held while reading, writing or removing.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/mutex.h"
#include "worker/source/disk_cache/cache_shares.h"
#include "worker/source/disk_cache/segment.h"

namespace leat::worker {

struct DiskCacheOptions {
  std::string directory;  // created if missing; its parent must exist
  uint64_t max_bytes = 0;
  uint64_t max_ranges = 4'000'000;    // about 100 bytes of memory each
  const DatasetUses* uses = nullptr;  // nullptr: no dataset is in use
  const Clock* clock = nullptr;       // nullptr: the machine's
  // Tests replace it to make writes fail.
  std::function<ssize_t(int, const void*, size_t, off_t)> write;  // pwrite
};

// The key of a range: a hash of the object's URL, its version, offset and size;
// owners make the keys of other entries. Its rank is `high`.
struct RangeKey {
  uint64_t high = 0;
  uint64_t low = 0;

  // `object`: its URL and version.
  static RangeKey Of(std::string_view object, uint64_t offset, uint64_t size);
  friend bool operator==(const RangeKey&, const RangeKey&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const RangeKey& key) {
    return H::combine(std::move(state), key.high, key.low);
  }
};

struct DiskCacheStats {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t damaged = 0;  // kept, but not as it was written
  uint64_t bytes = 0;    // of the files
  std::vector<CachedDatasetStats> datasets;
};

// A dataset whose ranges its holders keep.
class DiskDataset;

class DiskCache {
 public:
  using DatasetPtr = std::shared_ptr<DiskDataset>;

  // The largest range, as a fraction of the bytes.
  static constexpr uint64_t kMaxShareOf = 32;
  static constexpr size_t kMaxDatasets = 1024;  // without holders

  // Takes over what an earlier process left. kFailedPrecondition: another
  // process uses the directory now, or it is a link, another user's, or others
  // may write to it. kInvalidArgument: max_bytes below 1 MiB. Others: it cannot
  // be created, written to, read or locked (names it).
  static absl::StatusOr<std::unique_ptr<DiskCache>> Open(
      DiskCacheOptions options);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // `key`: its key in DatasetUses. `id`: as in CachedDataset; empty: unchanged.
  DatasetPtr OpenDataset(const Digest& key, const std::string& name,
                         const std::string& id = "");

  // Opens forms of the records of a dataset, as a separate dataset that gives
  // way to records and to forms of a lower tier (cache_shares.h). `key`:
  // unique.
  struct FormsOf {
    Digest dataset{};  // its key in DatasetUses
    std::string name;
    int tier = 1;           // at least 1
    std::string_view form;  // for people; a constant
  };
  DatasetPtr OpenForms(const Digest& key, const FormsOf& of);

  // Fills `into`, if the range is kept, for any dataset; otherwise `into` holds
  // anything. `dataset` nullptr: none, whose ranges go first.
  bool Get(const DatasetPtr& dataset, const RangeKey& key,
           std::span<std::byte> into);
  // Like Get, for an entry whose size the caller does not know. nullopt: it is
  // not kept, or damaged.
  std::optional<std::vector<std::byte>> Find(const DatasetPtr& dataset,
                                             const RangeKey& key);
  // Returns the size of the entry under the key. Reads and counts nothing.
  std::optional<uint64_t> SizeOf(const RangeKey& key) const;
  // The result of Find is wrong: it is forgotten, and counted as damaged.
  void Refuse(const DatasetPtr& dataset, const RangeKey& key);
  // True if Put would keep `size` bytes, in the present state.
  bool Wants(const DatasetPtr& dataset, const RangeKey& key, uint64_t size);
  // Keeps the range if the rules allow it.
  void Put(const DatasetPtr& dataset, const RangeKey& key,
           std::span<const std::byte> bytes);
  // Counts the time spent reading what was missed.
  void Took(const DatasetPtr& dataset, Duration duration);
  DiskCacheStats stats() const;
  // Returns the largest size of a range that may be kept.
  uint64_t max_range_bytes() const { return options_.max_bytes / kMaxShareOf; }

 private:
  friend class DiskDataset;
  struct Segment;
  using SegmentPtr = std::shared_ptr<Segment>;
  using Segments = std::vector<SegmentPtr>;
  struct Place {
    SegmentPtr segment;
    uint64_t offset = 0;
    uint32_t size = 0;
    uint32_t crc = 0;
  };
  // The position at which a range will be written.
  struct Slot {
    SegmentPtr segment;
    uint64_t offset = 0;
    uint64_t entry = 0;
  };

  DiskCache(DiskCacheOptions options, int lock_fd);
  absl::Status Load();
  void TakeUp(const std::map<uint64_t, DiskSegmentName>& names,
              Segments* removed);
  void LoadSegment(const SegmentPtr& segment);
  void AddPlaces(const SegmentPtr& segment, std::span<const DiskEntry> entries,
                 uint64_t size);
  // Finds, or adds, a dataset; datasets without holders may be removed for it.
  DatasetPtr DatasetOf(const Digest& key, Segments* removed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool ReadPlace(DiskDataset& of, const RangeKey& key, const Place& place,
                 std::span<std::byte> into);
  void ForgetPlace(const RangeKey& key, const Place& place);
  bool HasRoom(uint64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static bool IsTop(const DiskDataset& dataset, uint64_t rank);
  bool MakeRoom(DiskDataset& dataset, const RangeKey& key, uint64_t bytes,
                Segments* removed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Their files are removed without the lock.
  void DropTop(DiskDataset& dataset, Segments* removed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RemoveFiles(const Segments& segments) const;
  bool Reserve(DiskDataset& dataset, const RangeKey& key, uint64_t size,
               Slot* slot);
  int Write(const Slot& slot, std::span<const std::byte> bytes,
            const std::string& kind, uint64_t offset) const;
  void StopKeeping(int error);

  const DiskCacheOptions options_;
  const int lock_fd_;
  mutable Mutex mu_;
  CacheShares shares_ ABSL_GUARDED_BY(mu_);
  std::map<Digest, DatasetPtr> datasets_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<RangeKey, Place> places_ ABSL_GUARDED_BY(mu_);
  uint64_t next_number_ ABSL_GUARDED_BY(mu_) = 1;
  bool keeping_ ABSL_GUARDED_BY(mu_) = true;
  uint64_t damaged_ ABSL_GUARDED_BY(mu_) = 0;
  DatasetPtr nobody_;  // constant after Open
};

}  // namespace leat::worker
