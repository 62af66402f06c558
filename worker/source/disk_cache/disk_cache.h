// SPDX-License-Identifier: Apache-2.0
//
// DiskCache: ranges of remote objects in a directory, within a bound of bytes;
// and whatever else its owner finds again by a key (worker/cache/disk_forms.h).
//
// What is kept is what was read: a range of a version of an object, found again
// by the same range only. Readers ask for the same ranges every epoch (records,
// chunks, whole small objects), and nothing is fetched that nobody asked for.
//
// Which ranges are kept is cache_shares.h's rule, as of samples in memory: of a
// dataset those of the lowest ranks that fit. Ranges lie in segments by dataset
// and stratum, a run of ranks, a data and an index file each; a full cache
// gives up the highest stratum of a dataset as a whole: one unlink, and no
// holes. A stratum is at most a 64th of the dataset, and an eighth of what is
// kept of it.
//
// Every range and every entry of an index has a CRC-32C. Nothing is synced to
// disk: after a crash what is torn or missing is not found, that is all. What
// cannot be read or is damaged is a miss; what cannot be written (a full disk)
// ends the keeping of new ranges until the process starts again. Segments of
// another version are removed at the start, and so are those that hold nothing.
//
// The directory is one process's at a time; it and its files are its user's
// only, since they hold what that user may read.
// Thread-safe; no lock is held while reading, writing or removing.
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
  std::string directory;  // made if missing; its parent must exist
  uint64_t max_bytes = 0;
  uint64_t max_ranges = 4'000'000;    // about 100 bytes of memory each
  const DatasetUses* uses = nullptr;  // null: no dataset is in use
  const Clock* clock = nullptr;       // null: the machine's
  // Tests make it fail.
  std::function<ssize_t(int, const void*, size_t, off_t)> write;  // pwrite
};

// What a range is found by: a hash of the object's URL, its version, offset and
// size; others have keys of their owner's. Its rank is `high`.
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
  uint64_t damaged = 0;  // kept, and not as it was written
  uint64_t bytes = 0;    // of the files
  std::vector<CachedDatasetStats> datasets;
};

// A dataset whose ranges are kept, by whoever holds it.
class DiskDataset;

class DiskCache {
 public:
  using DatasetPtr = std::shared_ptr<DiskDataset>;

  static constexpr uint64_t kMaxShareOf = 32;   // of the bytes: a range
  static constexpr size_t kMaxDatasets = 1024;  // beside those that are held

  // Takes up what an earlier process left. kFailedPrecondition: another one
  // uses the directory now, or it is a link, another user's, or others may
  // write to it. Others: it cannot be made, written to, read or locked (names
  // it). kInvalidArgument: max_bytes below 1 MiB.
  static absl::StatusOr<std::unique_ptr<DiskCache>> Open(
      DiskCacheOptions options);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // `key`: as DatasetUses knows it. `id`: as CachedDataset's; empty: as it was.
  DatasetPtr OpenDataset(const Digest& key, const std::string& name,
                         const std::string& id = "");

  // Forms of the records of a dataset, as a dataset of their own, which give
  // way to records and to forms of a lower tier (cache_shares.h). `key`: nobody
  // else's.
  struct FormsOf {
    Digest dataset{};  // as DatasetUses knows it
    std::string name;
    int tier = 1;           // 1 and more
    std::string_view form;  // for people; a constant
  };
  DatasetPtr OpenForms(const Digest& key, const FormsOf& of);

  // Fills `into`, if the range is kept, for whichever dataset; otherwise `into`
  // holds anything. `dataset` null: none, whose ranges go first.
  bool Get(const DatasetPtr& dataset, const RangeKey& key,
           std::span<std::byte> into);
  // Like Get, for an entry whose size the caller does not know. nullopt: it is
  // not kept, or damaged.
  std::optional<std::vector<std::byte>> Find(const DatasetPtr& dataset,
                                             const RangeKey& key);
  // Returns the size of what is kept under the key. It reads and counts
  // nothing.
  std::optional<uint64_t> SizeOf(const RangeKey& key) const;
  // What Find gave is not what it should be: it is forgotten, and counted as
  // damaged.
  void Refuse(const DatasetPtr& dataset, const RangeKey& key);
  // Whether Put would keep so many bytes, as far as can be seen now.
  bool Wants(const DatasetPtr& dataset, const RangeKey& key, uint64_t size);
  // Keeps the range, or not.
  void Put(const DatasetPtr& dataset, const RangeKey& key,
           std::span<const std::byte> bytes);
  // That reading what was missed took so long.
  void Took(const DatasetPtr& dataset, Duration duration);
  DiskCacheStats stats() const;
  // Of a range that may be kept.
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
  // Where a range is about to be written.
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
  // Finds, or adds, a dataset; those that nobody holds may go for it.
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
