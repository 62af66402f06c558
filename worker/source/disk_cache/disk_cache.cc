// SPDX-License-Identifier: Apache-2.0
//
// Positions in a segment's files are given out under the lock and written
// without it. So an entry may be missing between others, after a crash or a
// failed write; its CRC then shows that its bytes are not an entry. Files are
// opened for each read and write, so that many segments take no descriptors. A
// reader of a segment that was given up meanwhile finds nothing, and a writer
// that created its files anew removes them.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "core/crc32c.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/status.h"
#include "worker/source/disk_cache/segment.h"
#include "worker/source/disk_cache/state.h"
#include "worker/source/faults/file_error.h"

namespace leat::worker {
namespace {

constexpr uint64_t kMinBytes = 1 << 20;
// A dataset takes back ranks that it gave up if this fraction of the bytes is
// free. It is more than a stratum of what is kept.
constexpr uint64_t kMarginOf = 8;

}  // namespace

RangeKey RangeKey::Of(std::string_view object, uint64_t offset, uint64_t size) {
  const Digest digest =
      Sha256().UpdateField(object).UpdateU64(offset).UpdateU64(size).Finish();
  RangeKey key;
  std::memcpy(&key, digest.data(), sizeof key);
  return key;
}

DiskCache::DiskCache(DiskCacheOptions options, int lock_fd)
    : options_(std::move(options)),
      lock_fd_(lock_fd),
      shares_(options_.max_bytes, options_.max_bytes / kMarginOf, options_.uses,
              *options_.clock) {}

DiskCache::~DiskCache() { close(lock_fd_); }

absl::StatusOr<std::unique_ptr<DiskCache>> DiskCache::Open(
    DiskCacheOptions options) {
  const std::string& directory = options.directory;
  if (options.max_bytes < kMinBytes)
    return InvalidArgument("disk cache {}: {} bytes, want at least {}",
                           directory, options.max_bytes, kMinBytes);
  if (!options.write) options.write = &pwrite;
  if (options.clock == nullptr) options.clock = &Clock::Real();
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return FileError(errno, "make the disk cache", directory);
  RETURN_IF_ERROR(CheckOwnDirectory(directory));
  const std::string lock = directory + "/lock";
  const int fd = OpenOwn(lock, O_RDWR | O_CREAT);
  if (fd < 0) return FileError(errno, "open", lock);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    close(fd);
    if (error == EWOULDBLOCK)
      return FailedPrecondition(
          "disk cache {}: another process uses it; each wants its own",
          directory);
    return FileError(error, "lock", lock);
  }
  std::unique_ptr<DiskCache> cache(new DiskCache(std::move(options), fd));
  RETURN_IF_ERROR(cache->Load());
  return cache;
}

DiskCache::DatasetPtr DiskCache::OpenDataset(const Digest& key,
                                             const std::string& name,
                                             const std::string& id) {
  Segments removed;
  DatasetPtr dataset;
  {
    MutexLock lock(&mu_);
    dataset = DatasetOf(key, &removed);
    dataset->name = name;
    if (!id.empty()) dataset->id = id;
  }
  RemoveFiles(removed);
  return dataset;
}

DiskCache::DatasetPtr DiskCache::OpenForms(const Digest& key,
                                           const FormsOf& of) {
  Segments removed;
  DatasetPtr dataset;
  {
    MutexLock lock(&mu_);
    dataset = DatasetOf(key, &removed);
    dataset->name = of.name;
    dataset->tier = of.tier;
    dataset->form = of.form;
    dataset->used_as = of.dataset;
  }
  RemoveFiles(removed);
  return dataset;
}

DiskCache::DatasetPtr DiskCache::DatasetOf(const Digest& key,
                                           Segments* removed) {
  if (const auto it = datasets_.find(key); it != datasets_.end())
    return it->second;
  // Datasets without holders are removed if there are too many.
  for (auto it = datasets_.begin();
       datasets_.size() >= kMaxDatasets && it != datasets_.end();) {
    if (it->second.use_count() > 1) {
      ++it;
      continue;
    }
    while (!it->second->segments.empty()) DropTop(*it->second, removed);
    shares_.Remove(it->second.get());
    it = datasets_.erase(it);
  }
  auto dataset = std::make_shared<DiskDataset>(key, ToHex(key));
  shares_.Add(dataset.get());
  return datasets_.emplace(key, std::move(dataset)).first->second;
}

bool DiskCache::Get(const DatasetPtr& dataset, const RangeKey& key,
                    std::span<std::byte> into) {
  DiskDataset& of = dataset == nullptr ? *nobody_ : *dataset;
  Place place;
  {
    MutexLock lock(&mu_);
    const auto it = places_.find(key);
    if (it == places_.end() || it->second.size != into.size()) {
      ++of.misses;
      return false;
    }
    place = it->second;
  }
  return ReadPlace(of, key, place, into);
}

std::optional<std::vector<std::byte>> DiskCache::Find(const DatasetPtr& dataset,
                                                      const RangeKey& key) {
  DiskDataset& of = dataset == nullptr ? *nobody_ : *dataset;
  Place place;
  {
    MutexLock lock(&mu_);
    const auto it = places_.find(key);
    if (it == places_.end() || it->second.size > max_range_bytes()) {
      ++of.misses;
      return std::nullopt;
    }
    place = it->second;
  }
  std::vector<std::byte> bytes(place.size);
  if (!ReadPlace(of, key, place, bytes)) return std::nullopt;
  return bytes;
}

std::optional<uint64_t> DiskCache::SizeOf(const RangeKey& key) const {
  MutexLock lock(&mu_);
  const auto it = places_.find(key);
  if (it == places_.end()) return std::nullopt;
  return it->second.size;
}

// Counts as a hit or a miss.
bool DiskCache::ReadPlace(DiskDataset& of, const RangeKey& key,
                          const Place& place, std::span<std::byte> into) {
  const int data = OpenOwn(
      options_.directory + '/' + place.segment->name.File("data"), O_RDONLY);
  const bool sound = data >= 0 && ReadFully(data, into, place.offset) &&
                     Crc32c(into) == place.crc;
  if (data >= 0) close(data);
  ++(sound ? of.hits : of.misses);
  if (!sound) ForgetPlace(key, place);
  return sound;
}

void DiskCache::Refuse(const DatasetPtr& dataset, const RangeKey& key) {
  DiskDataset& of = dataset == nullptr ? *nobody_ : *dataset;
  --of.hits;
  ++of.misses;
  Place place;
  {
    MutexLock lock(&mu_);
    const auto it = places_.find(key);
    if (it == places_.end()) return;
    place = it->second;
  }
  ForgetPlace(key, place);
}

void DiskCache::ForgetPlace(const RangeKey& key, const Place& place) {
  bool first = false;
  {
    MutexLock lock(&mu_);
    if (place.segment->forgotten) return;
    first = damaged_++ == 0;
    const auto it = places_.find(key);
    if (it != places_.end() && it->second.segment == place.segment &&
        it->second.offset == place.offset)
      places_.erase(it);
  }
  if (first)
    LOG_WARN("disk_cache.damaged directory={} segment={} offset={}",
             options_.directory, place.segment->name.File("data"),
             place.offset);
}

bool DiskCache::HasRoom(uint64_t bytes) const {
  return shares_.HasRoom(bytes) && shares_.entries() < options_.max_ranges;
}

void DiskCache::DropTop(DiskDataset& dataset, Segments* removed) {
  const auto top = std::prev(dataset.segments.end());
  const SegmentPtr segment = top->second;
  dataset.segments.erase(top);
  segment->forgotten = true;
  for (const RangeKey& key : segment->keys) {
    const auto it = places_.find(key);
    if (it != places_.end() && it->second.segment == segment) places_.erase(it);
  }
  shares_.Shrank(&dataset, segment->bytes(), segment->entries);
  CacheShares::Fell(&dataset, LowestRankOf(segment->name.stratum));
  removed->push_back(segment);
}

// An index without data would be removed at the next start.
void DiskCache::RemoveFiles(const Segments& segments) const {
  for (const SegmentPtr& segment : segments)
    for (const char* kind : {"index", "data"})
      unlink((options_.directory + '/' + segment->name.File(kind)).c_str());
}

// True if the dataset, which has to give up bytes itself, has none above the
// rank.
bool DiskCache::IsTop(const DiskDataset& dataset, uint64_t rank) {
  return dataset.segments.empty() ||
         dataset.segments.rbegin()->first <= StratumOf(rank);
}

bool DiskCache::MakeRoom(DiskDataset& dataset, const RangeKey& key,
                         uint64_t bytes, Segments* removed) {
  const uint64_t rank = key.high;
  if (!shares_.Admits(&dataset, rank, bytes)) return false;
  while (!HasRoom(bytes)) {
    auto* const giver =
        static_cast<DiskDataset*>(shares_.Giver(&dataset, bytes));
    if (giver == &dataset && IsTop(dataset, rank)) {
      CacheShares::Fell(&dataset, rank);
      return false;
    }
    DropTop(*giver, removed);
  }
  return true;
}

bool DiskCache::Wants(const DatasetPtr& dataset, const RangeKey& key,
                      uint64_t size) {
  const uint64_t bytes = size + sizeof(DiskEntry);
  if (size == 0 || bytes > max_range_bytes()) return false;
  DiskDataset& of = dataset == nullptr ? *nobody_ : *dataset;
  MutexLock lock(&mu_);
  if (!keeping_ || places_.contains(key) ||
      !shares_.Admits(&of, key.high, bytes))
    return false;
  return HasRoom(bytes) || shares_.Giver(&of, bytes) != &of ||
         !IsTop(of, key.high);
}

// Returns false if the range is not to be kept.
bool DiskCache::Reserve(DiskDataset& dataset, const RangeKey& key,
                        uint64_t size, Slot* slot) {
  Segments removed;
  bool reserved = false;
  {
    MutexLock lock(&mu_);
    if (!keeping_ || places_.contains(key)) return false;
    reserved = MakeRoom(dataset, key, size + sizeof(DiskEntry), &removed);
    if (reserved) {
      const uint32_t stratum = StratumOf(key.high);
      SegmentPtr& segment = dataset.segments[stratum];
      if (segment == nullptr)
        segment = std::make_shared<Segment>(
            &dataset, DiskSegmentName{dataset.key, stratum, next_number_++});
      *slot = {segment, segment->size, segment->entries};
      segment->size += size;
      ++segment->entries;
      shares_.Grew(&dataset, size + sizeof(DiskEntry));
    }
  }
  RemoveFiles(removed);
  return reserved;
}

// Writes into one of the segment's files, which is created if it is missing.
// Returns 0, or errno.
int DiskCache::Write(const Slot& slot, std::span<const std::byte> bytes,
                     const std::string& kind, uint64_t offset) const {
  const int fd =
      OpenOwn(options_.directory + '/' + slot.segment->name.File(kind),
              O_WRONLY | O_CREAT);
  if (fd < 0) return errno;
  int error = 0;
  for (size_t done = 0; error == 0 && done < bytes.size();) {
    const ssize_t got =
        options_.write(fd, bytes.data() + done, bytes.size() - done,
                       static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      error = got < 0 ? errno : ENOSPC;
    else
      done += static_cast<size_t>(got);
  }
  close(fd);
  return error;
}

void DiskCache::Put(const DatasetPtr& dataset, const RangeKey& key,
                    std::span<const std::byte> bytes) {
  if (bytes.empty() || bytes.size() + sizeof(DiskEntry) > max_range_bytes() ||
      bytes.size() > UINT32_MAX)
    return;
  Slot slot;
  if (!Reserve(dataset == nullptr ? *nobody_ : *dataset, key, bytes.size(),
               &slot))
    return;
  DiskEntry entry = {.high = key.high,
                     .low = key.low,
                     .offset = slot.offset,
                     .size = static_cast<uint32_t>(bytes.size()),
                     .crc = Crc32c(bytes)};
  entry.entry_crc = entry.Crc();
  int error = Write(slot, bytes, "data", slot.offset);
  if (error == 0)
    error = Write(slot, std::as_bytes(std::span(&entry, 1)), "index",
                  slot.entry * sizeof(DiskEntry));
  bool forgotten = false;
  {
    MutexLock lock(&mu_);
    forgotten = slot.segment->forgotten;
    const Place place{slot.segment, slot.offset, entry.size, entry.crc};
    if (!forgotten && error == 0 && places_.emplace(key, place).second)
      slot.segment->keys.push_back(key);
  }
  if (forgotten) RemoveFiles({slot.segment});  // that this created anew
  // Descriptors become free again; the disk's room and health may not.
  if (error != 0 && error != EMFILE && error != ENFILE) StopKeeping(error);
}

void DiskCache::Took(const DatasetPtr& dataset, Duration duration) {
  DiskDataset& of = dataset == nullptr ? *nobody_ : *dataset;
  of.read_ns += static_cast<uint64_t>(duration.count());
}

void DiskCache::StopKeeping(int error) {
  uint64_t bytes = 0;
  {
    MutexLock lock(&mu_);
    if (!std::exchange(keeping_, false)) return;
    bytes = shares_.bytes();
  }
  LOG_WARN("disk_cache.stopped directory={} bytes={} error=\"{}\"",
           options_.directory, bytes, std::strerror(error));
}

DiskCacheStats DiskCache::stats() const {
  MutexLock lock(&mu_);
  return {.hits = shares_.hits(),
          .misses = shares_.misses(),
          .damaged = damaged_,
          .bytes = shares_.bytes(),
          .datasets = shares_.stats()};
}

}  // namespace leat::worker
