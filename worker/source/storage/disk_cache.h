// SPDX-License-Identifier: Apache-2.0
//
// DiskCache: ranges of remote objects in a directory, within a bound of bytes.
//
// What is kept is what was read: a range of a version of an object, found again
// by the same range only. Readers ask for the same ranges every epoch (records,
// chunks, whole small objects), and nothing is fetched that nobody asked for.
//
// Ranges are appended to segment files, a data and an index file each. The
// oldest segment goes as a whole when there is no room (FIFO), and once that is
// so, one in kAdmitOneOf new ranges is kept: so a dataset that is larger than
// the cache does not wash out in each epoch what the next one would find.
//
// Every range and every entry of an index has a CRC-32C. Nothing is synced to
// disk: after a crash what is torn or missing is not found, that is all. What
// cannot be read or is damaged is a miss; what cannot be written (a full disk)
// ends the keeping of new ranges until the process starts again.
//
// The directory is one process's at a time; it and its files are its user's
// only, since they hold what that user may read.
// Thread-safe; no lock is held while reading or writing.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"

namespace leat::worker {

struct DiskCacheOptions {
  std::string directory;  // made if missing; its parent must exist
  uint64_t max_bytes = 0;
  uint64_t max_ranges = 4'000'000;  // about 100 bytes of memory each
  // Tests make it fail.
  std::function<ssize_t(int, const void*, size_t, off_t)> write;  // pwrite
};

// What a range is found by: a hash of the object's URL, its version, offset and
// size.
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
  uint64_t damaged = 0;  // of the misses: kept, and not as it was written
  uint64_t bytes = 0;    // of the files
};

class DiskCache {
 public:
  static constexpr uint64_t kSegments = 32;  // that the bytes are divided into
  static constexpr uint64_t kAdmitOneOf = 4;

  // Takes up what an earlier process left. kFailedPrecondition: another one
  // uses the directory now, or it is a link, another user's, or others may
  // write to it. Others: it cannot be made, read or locked (names
  // it). kInvalidArgument: max_bytes below 1 MiB.
  static absl::StatusOr<std::unique_ptr<DiskCache>> Open(
      DiskCacheOptions options);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // Fills `into`, if the range is kept; otherwise `into` holds anything.
  bool Get(const RangeKey& key, std::span<std::byte> into);
  // Keeps the range, or not.
  void Put(const RangeKey& key, std::span<const std::byte> bytes);
  DiskCacheStats stats() const;
  // Of a range that may be kept.
  uint64_t max_range_bytes() const { return segment_bytes_; }

 private:
  class Segment;
  using SegmentPtr = std::shared_ptr<Segment>;
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
    uint32_t entry = 0;
  };

  DiskCache(DiskCacheOptions options, int lock_fd);
  absl::Status Load();
  absl::Status LoadSegment(uint64_t number);
  void MakeFirstSegment();
  // nullptr: errno says why.
  SegmentPtr MakeSegment(uint64_t number);
  bool HasRoom(uint64_t size) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MustEvict() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Its files are removed without the lock.
  SegmentPtr ForgetOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RemoveFiles(const std::vector<SegmentPtr>& segments) const;
  bool Reserve(const RangeKey& key, uint64_t size, Slot* slot);
  void StopKeeping(int error);

  const DiskCacheOptions options_;
  const int lock_fd_;
  const uint64_t segment_bytes_;
  const uint32_t segment_entries_;
  mutable Mutex mu_;
  absl::flat_hash_map<RangeKey, Place> places_ ABSL_GUARDED_BY(mu_);
  std::deque<SegmentPtr> segments_ ABSL_GUARDED_BY(mu_);  // oldest first
  uint64_t next_number_ ABSL_GUARDED_BY(mu_) = 1;
  bool rolling_ ABSL_GUARDED_BY(mu_) = false;  // somebody makes a segment
  bool keeping_ ABSL_GUARDED_BY(mu_) = true;
  uint64_t offered_ ABSL_GUARDED_BY(mu_) = 0;  // while full
  DiskCacheStats stats_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::worker
