// SPDX-License-Identifier: Apache-2.0
//
// Takes over what an earlier process left in the directory: reads the indices,
// but not the data.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "worker/source/disk_cache/state.h"
#include "worker/source/faults/file_error.h"

namespace leat::worker {
namespace {

constexpr size_t kEntriesAtOnce = 16 << 10;  // of an index, per read

}  // namespace

absl::Status DiskCache::Load() {
  DIR* const directory = opendir(options_.directory.c_str());
  if (directory == nullptr) return FileError(errno, "list", options_.directory);
  std::map<uint64_t, DiskSegmentName> names;  // by number: oldest first
  size_t of_other_version = 0;
  while (const dirent* const entry = readdir(directory)) {
    const std::string file = entry->d_name;
    // A segment without data is removed below, and so is one without an index.
    const auto name = DiskSegmentName::Of(file);
    if (name) names.emplace(name->number, *name);
    if (name || !IsOfOtherVersion(file)) continue;
    unlinkat(dirfd(directory), file.c_str(), 0);
    ++of_other_version;
  }
  closedir(directory);
  if (of_other_version > 0)
    LOG_WARN("disk_cache.other_version directory={} files_removed={}",
             options_.directory, of_other_version);
  Segments removed;
  TakeUp(names, &removed);
  RemoveFiles(removed);
  uint64_t ranges = 0, bytes = 0;
  {
    MutexLock lock(&mu_);
    ranges = places_.size();
    bytes = shares_.bytes();
  }
  LOG_INFO("disk_cache.opened directory={} ranges={} bytes={} limit_bytes={}",
           options_.directory, ranges, bytes, options_.max_bytes);
  return absl::OkStatus();
}

// Datasets are added in the order of their last writes: those that are not read
// are given up in that order.
void DiskCache::TakeUp(const std::map<uint64_t, DiskSegmentName>& names,
                       Segments* removed) {
  std::vector<Digest> newest_first;
  for (auto it = names.rbegin(); it != names.rend(); ++it)
    if (std::ranges::find(newest_first, it->second.dataset) ==
        newest_first.end())
      newest_first.push_back(it->second.dataset);
  Segments found;
  std::vector<DatasetPtr> held;  // until they have their segments
  {
    MutexLock lock(&mu_);
    nobody_ = DatasetOf(Digest{}, removed);
    nobody_->name = "(no dataset)";
    for (auto it = newest_first.rbegin(); it != newest_first.rend(); ++it)
      held.push_back(DatasetOf(*it, removed));
    for (const auto& [number, name] : names) {
      next_number_ = number + 1;
      found.push_back(std::make_shared<Segment>(
          DatasetOf(name.dataset, removed).get(), name));
    }
  }
  for (const SegmentPtr& segment : found) LoadSegment(segment);
  MutexLock lock(&mu_);
  for (const SegmentPtr& segment : found) {
    const bool first =
        !segment->keys.empty() &&
        segment->dataset->segments.emplace(segment->name.stratum, segment)
            .second;
    if (first) {
      shares_.Grew(segment->dataset, segment->bytes(), segment->entries);
    } else {
      removed->push_back(segment);
      segment->forgotten = true;
      absl::erase_if(places_, [&](const auto& each) {
        return each.second.segment == segment;
      });
    }
  }
  while (!HasRoom(0)) {
    auto* const giver = static_cast<DiskDataset*>(
        shares_.Giver(nobody_.get(), options_.max_bytes));
    if (giver->segments.empty()) break;
    DropTop(*giver, removed);
  }
}

// A segment that cannot be read gets no keys.
void DiskCache::LoadSegment(const SegmentPtr& segment) {
  const std::string stem = options_.directory + '/';
  const int data = OpenOwn(stem + segment->name.File("data"), O_RDONLY);
  const int index = OpenOwn(stem + segment->name.File("index"), O_RDONLY);
  struct stat of_data, of_index;
  const bool there = data >= 0 && index >= 0 && fstat(data, &of_data) == 0 &&
                     fstat(index, &of_index) == 0;
  if (there) {
    const auto size = static_cast<uint64_t>(of_data.st_size);
    const auto index_size = static_cast<uint64_t>(of_index.st_size);
    // A half entry at the end counts: the next one is written after it.
    const uint64_t entries = std::min<uint64_t>(
        (index_size + sizeof(DiskEntry) - 1) / sizeof(DiskEntry),
        options_.max_ranges);
    std::vector<DiskEntry> read;
    const uint64_t whole = std::min(entries, index_size / sizeof(DiskEntry));
    for (uint64_t at = 0; at < whole; at += read.size()) {
      read.resize(std::min<uint64_t>(whole - at, kEntriesAtOnce));
      if (!ReadFully(index, std::as_writable_bytes(std::span(read)),
                     at * sizeof(DiskEntry)))
        break;
      AddPlaces(segment, read, size);
    }
    MutexLock lock(&mu_);
    segment->size = size;
    segment->entries = entries;
  }
  if (data >= 0) close(data);
  if (index >= 0) close(index);
}

void DiskCache::AddPlaces(const SegmentPtr& segment,
                          std::span<const DiskEntry> entries, uint64_t size) {
  MutexLock lock(&mu_);
  for (const DiskEntry& entry : entries) {
    if (!entry.IsSound(size) || StratumOf(entry.high) != segment->name.stratum)
      continue;
    const RangeKey key{entry.high, entry.low};
    places_[key] = {segment, entry.offset, entry.size, entry.crc};
    segment->keys.push_back(key);
  }
}

}  // namespace leat::worker
