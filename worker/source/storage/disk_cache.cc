// SPDX-License-Identifier: Apache-2.0
//
// DIR/lock            held by the process that uses the directory
// DIR/<16 hex>.data   ranges, one after the other
// DIR/<16 hex>.index  an Entry each, written after its range
//
// Places in both files are given out under the lock and written without it. So
// an entry may be missing between others, after a crash or a failed write; its
// bytes are no Entry then, by their CRC.
#include "worker/source/storage/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "core/crc32c.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/status.h"
#include "worker/source/file_error.h"

namespace leat::worker {
namespace {

constexpr uint64_t kMinBytes = 1 << 20;
constexpr size_t kMaxSegmentFiles = 4 * DiskCache::kSegments;
constexpr char kMagic[8] = {'l', 'e', 'a', 't', 'd', 'c', '0', '1'};

// As on disk: little-endian, as all processors that we run on.
struct Entry {
  char magic[8];
  uint64_t high, low;  // the key
  uint64_t offset;
  uint32_t size;
  uint32_t crc;  // of the range
  uint32_t reserved;
  uint32_t entry_crc;  // of what is before it
};
static_assert(sizeof(Entry) == 48);

uint32_t CrcOf(const Entry& entry) {
  return Crc32c(std::as_bytes(std::span(&entry, 1))
                    .first(sizeof entry - sizeof entry.entry_crc));
}

std::string FileName(const std::string& directory, uint64_t number,
                     std::string_view kind) {
  return fmt::format("{}/{:016x}.{}", directory, number, kind);
}

bool ReadFully(int fd, std::span<std::byte> into, uint64_t offset) {
  for (size_t done = 0; done < into.size();) {
    const ssize_t got = pread(fd, into.data() + done, into.size() - done,
                              static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

// Whoever can write there chooses what jobs train on: checksums tell damage,
// not intent.
absl::Status CheckOwn(const std::string& directory) {
  std::string path = directory;  // with a slash behind it a link is followed
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  struct stat about;
  if (lstat(path.c_str(), &about) != 0)
    return FileError(errno, "look at the disk cache", directory);
  if (!S_ISDIR(about.st_mode))
    return FailedPrecondition("disk cache {}: want a directory, not a link",
                              directory);
  if (about.st_uid != geteuid())
    return FailedPrecondition(
        "disk cache {}: it is user {}'s, want one of user {}, who runs this "
        "worker",
        directory, about.st_uid, geteuid());
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return FailedPrecondition(
        "disk cache {}: others may write to it (mode {:04o}), want 0700",
        directory, about.st_mode & 07777);
  return absl::OkStatus();
}

int OpenOwn(const std::string& path, int flags) {
  return open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

}  // namespace

RangeKey RangeKey::Of(std::string_view object, uint64_t offset, uint64_t size) {
  const Digest digest =
      Sha256().UpdateField(object).UpdateU64(offset).UpdateU64(size).Finish();
  RangeKey key;
  std::memcpy(&key, digest.data(), sizeof key);
  return key;
}

// Its files stay open while anybody reads or writes them, also when it has been
// forgotten and they are removed.
class DiskCache::Segment {
 public:
  Segment(uint64_t number, int data, int index)
      : number(number), data(data), index(index) {}
  ~Segment() {
    close(data);
    close(index);
  }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const uint64_t number;
  const int data, index;
  // Guarded by the cache's lock.
  uint64_t size = 0;     // bytes of `data` that were given out
  uint32_t entries = 0;  // the same of `index`
  bool forgotten = false;
  std::vector<RangeKey> keys;

  uint64_t bytes() const { return size + entries * sizeof(Entry); }
};

DiskCache::DiskCache(DiskCacheOptions options, int lock_fd)
    : options_(std::move(options)),
      lock_fd_(lock_fd),
      segment_bytes_(options_.max_bytes / kSegments),
      segment_entries_(static_cast<uint32_t>(
          std::max<uint64_t>(options_.max_ranges / kSegments, 1))) {}

DiskCache::~DiskCache() { close(lock_fd_); }

absl::StatusOr<std::unique_ptr<DiskCache>> DiskCache::Open(
    DiskCacheOptions options) {
  const std::string& directory = options.directory;
  if (options.max_bytes < kMinBytes)
    return InvalidArgument("disk cache {}: {} bytes, want at least {}",
                           directory, options.max_bytes, kMinBytes);
  if (!options.write) options.write = &pwrite;
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return FileError(errno, "make the disk cache", directory);
  RETURN_IF_ERROR(CheckOwn(directory));
  const std::string lock = directory + "/lock";
  const int fd = OpenOwn(lock, O_CREAT);
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
  cache->MakeFirstSegment();
  return cache;
}

absl::Status DiskCache::Load() {
  DIR* const directory = opendir(options_.directory.c_str());
  if (directory == nullptr) return FileError(errno, "list", options_.directory);
  std::vector<uint64_t> numbers;
  while (const dirent* const entry = readdir(directory)) {
    uint64_t number = 0;
    if (std::sscanf(entry->d_name, "%16lx.data", &number) == 1 &&
        FileName("", number, "data").substr(1) == entry->d_name)
      numbers.push_back(number);
  }
  closedir(directory);
  std::sort(numbers.begin(), numbers.end());
  for (const uint64_t number : numbers) RETURN_IF_ERROR(LoadSegment(number));
  std::vector<SegmentPtr> removed;
  MutexLock lock(&mu_);
  if (!segments_.empty()) next_number_ = segments_.back()->number + 1;
  while (!segments_.empty() && (stats_.bytes > options_.max_bytes ||
                                segments_.size() > kMaxSegmentFiles))
    removed.push_back(ForgetOldest());
  RemoveFiles(removed);
  LOG_INFO("disk_cache.opened directory={} ranges={} bytes={} limit_bytes={}",
           options_.directory, places_.size(), stats_.bytes,
           options_.max_bytes);
  return absl::OkStatus();
}

// Ranges that come while somebody makes a segment are passed over, and the
// first ranges of an empty cache come all at once.
void DiskCache::MakeFirstSegment() {
  uint64_t number = 0;
  {
    MutexLock lock(&mu_);
    if (!segments_.empty()) return;
    number = next_number_++;
  }
  SegmentPtr segment = MakeSegment(number);
  if (segment == nullptr) return StopKeeping(errno);
  MutexLock lock(&mu_);
  segments_.push_back(std::move(segment));
}

absl::Status DiskCache::LoadSegment(uint64_t number) {
  const std::string data_name = FileName(options_.directory, number, "data");
  const std::string index_name = FileName(options_.directory, number, "index");
  const int data = OpenOwn(data_name, 0);
  if (data < 0) return FileError(errno, "open", data_name);
  const int index = OpenOwn(index_name, O_CREAT);
  if (index < 0) {
    const int error = errno;
    close(data);
    return FileError(error, "open", index_name);
  }
  const auto segment = std::make_shared<Segment>(number, data, index);
  struct stat of_data, of_index;
  if (fstat(data, &of_data) != 0) return FileError(errno, "look at", data_name);
  if (fstat(index, &of_index) != 0)
    return FileError(errno, "look at", index_name);
  segment->size = static_cast<uint64_t>(of_data.st_size);
  // A half entry at the end counts: the next one goes behind it.
  const uint64_t entries =
      (static_cast<uint64_t>(of_index.st_size) + sizeof(Entry) - 1) /
      sizeof(Entry);
  segment->entries =
      static_cast<uint32_t>(std::min<uint64_t>(entries, segment_entries_));
  std::vector<Entry> read(static_cast<uint64_t>(of_index.st_size) /
                          sizeof(Entry));
  if (read.size() > segment_entries_) read.resize(segment_entries_);
  if (!ReadFully(index, std::as_writable_bytes(std::span(read)), 0))
    read.clear();
  MutexLock lock(&mu_);
  for (const Entry& entry : read) {
    if (std::memcmp(entry.magic, kMagic, sizeof kMagic) != 0 ||
        entry.entry_crc != CrcOf(entry) || entry.offset > segment->size ||
        entry.size > segment->size - entry.offset)
      continue;
    const RangeKey key{entry.high, entry.low};
    places_[key] = {segment, entry.offset, entry.size, entry.crc};
    segment->keys.push_back(key);
  }
  stats_.bytes += segment->bytes();
  segments_.push_back(segment);
  return absl::OkStatus();
}

bool DiskCache::Get(const RangeKey& key, std::span<std::byte> into) {
  Place place;
  {
    MutexLock lock(&mu_);
    const auto it = places_.find(key);
    if (it == places_.end() || it->second.size != into.size()) {
      ++stats_.misses;
      return false;
    }
    place = it->second;
  }
  const bool sound = ReadFully(place.segment->data, into, place.offset) &&
                     Crc32c(into) == place.crc;
  MutexLock lock(&mu_);
  if (sound) {
    ++stats_.hits;
    return true;
  }
  ++stats_.misses;
  if (stats_.damaged++ == 0)
    LOG_WARN("disk_cache.damaged directory={} segment={:016x} offset={}",
             options_.directory, place.segment->number, place.offset);
  const auto it = places_.find(key);
  if (it != places_.end() && it->second.segment == place.segment &&
      it->second.offset == place.offset)
    places_.erase(it);
  return false;
}

bool DiskCache::HasRoom(uint64_t size) const {
  if (segments_.empty()) return false;
  const Segment& last = *segments_.back();
  return last.entries < segment_entries_ &&
         last.bytes() + size + sizeof(Entry) <= segment_bytes_;
}

bool DiskCache::MustEvict() const {
  return !segments_.empty() &&
         (stats_.bytes + segment_bytes_ > options_.max_bytes ||
          segments_.size() >= kMaxSegmentFiles);
}

DiskCache::SegmentPtr DiskCache::ForgetOldest() {
  SegmentPtr segment = std::move(segments_.front());
  segments_.pop_front();
  segment->forgotten = true;
  stats_.bytes -= segment->bytes();
  for (const RangeKey& key : segment->keys) {
    const auto it = places_.find(key);
    if (it != places_.end() && it->second.segment == segment) places_.erase(it);
  }
  return segment;
}

// An index without data would be left for ever; data without an index is found.
void DiskCache::RemoveFiles(const std::vector<SegmentPtr>& segments) const {
  for (const SegmentPtr& segment : segments) {
    unlink(FileName(options_.directory, segment->number, "index").c_str());
    unlink(FileName(options_.directory, segment->number, "data").c_str());
  }
}

DiskCache::SegmentPtr DiskCache::MakeSegment(uint64_t number) {
  const std::string names[] = {FileName(options_.directory, number, "data"),
                               FileName(options_.directory, number, "index")};
  const int data = OpenOwn(names[0], O_CREAT | O_TRUNC);
  if (data < 0) return nullptr;
  const int index = OpenOwn(names[1], O_CREAT | O_TRUNC);
  if (index < 0) {
    const int error = errno;
    close(data);
    errno = error;
    return nullptr;
  }
  return std::make_shared<Segment>(number, data, index);
}

// False: the range is not to be kept.
bool DiskCache::Reserve(const RangeKey& key, uint64_t size, Slot* slot) {
  std::vector<SegmentPtr> removed;
  uint64_t number = 0;
  {
    MutexLock lock(&mu_);
    if (!keeping_ || places_.contains(key)) return false;
    // Full: most of what comes is passed over.
    if (segments_.size() > 1 &&
        stats_.bytes + segment_bytes_ > options_.max_bytes &&
        offered_++ % kAdmitOneOf != 0)
      return false;
    if (!HasRoom(size)) {
      if (rolling_) return false;
      rolling_ = true;
      while (MustEvict()) removed.push_back(ForgetOldest());
      number = next_number_++;
    }
  }
  if (number > 0) {
    RemoveFiles(removed);
    SegmentPtr segment = MakeSegment(number);
    if (segment == nullptr) StopKeeping(errno);
    MutexLock lock(&mu_);
    rolling_ = false;
    if (segment == nullptr) return false;
    segments_.push_back(std::move(segment));
  }
  MutexLock lock(&mu_);
  if (!HasRoom(size)) return false;  // others were faster
  slot->segment = segments_.back();
  slot->offset = slot->segment->size;
  slot->entry = slot->segment->entries;
  slot->segment->size += size;
  ++slot->segment->entries;
  stats_.bytes += size + sizeof(Entry);
  return true;
}

void DiskCache::Put(const RangeKey& key, std::span<const std::byte> bytes) {
  if (bytes.empty() || bytes.size() + sizeof(Entry) > segment_bytes_ ||
      bytes.size() > UINT32_MAX)
    return;
  Slot slot;
  if (!Reserve(key, bytes.size(), &slot)) return;
  Entry entry = {.magic = {},
                 .high = key.high,
                 .low = key.low,
                 .offset = slot.offset,
                 .size = static_cast<uint32_t>(bytes.size()),
                 .crc = Crc32c(bytes),
                 .reserved = 0,
                 .entry_crc = 0};
  std::memcpy(entry.magic, kMagic, sizeof kMagic);
  entry.entry_crc = CrcOf(entry);
  const auto write = [&](int fd, std::span<const std::byte> from,
                         uint64_t offset) {
    for (size_t done = 0; done < from.size();) {
      const ssize_t got =
          options_.write(fd, from.data() + done, from.size() - done,
                         static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return got < 0 ? errno : ENOSPC;
      done += static_cast<size_t>(got);
    }
    return 0;
  };
  int error = write(slot.segment->data, bytes, slot.offset);
  if (error == 0)
    error = write(slot.segment->index, std::as_bytes(std::span(&entry, 1)),
                  slot.entry * sizeof(Entry));
  if (error != 0) return StopKeeping(error);
  MutexLock lock(&mu_);
  if (slot.segment->forgotten) return;
  const Place place{slot.segment, slot.offset, entry.size, entry.crc};
  if (places_.emplace(key, place).second) slot.segment->keys.push_back(key);
}

void DiskCache::StopKeeping(int error) {
  MutexLock lock(&mu_);
  if (!std::exchange(keeping_, false)) return;
  LOG_WARN("disk_cache.stopped directory={} bytes={} error=\"{}\"",
           options_.directory, stats_.bytes, std::strerror(error));
}

DiskCacheStats DiskCache::stats() const {
  MutexLock lock(&mu_);
  return stats_;
}

}  // namespace leat::worker
