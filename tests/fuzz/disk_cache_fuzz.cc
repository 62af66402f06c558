// SPDX-License-Identifier: Apache-2.0
//
// Files that a disk cache finds in its directory: a segment's data and index,
// mostly with correct sums. The cache returns the bytes at the position in an
// entry, and continues to store new ranges.
#include <filesystem>
#include <string>
#include <vector>

#include "core/crc32c.h"
#include "core/log.h"
#include "core/status.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/disk_cache/disk_cache.h"

namespace leat::worker::disk_cache_fuzz {
namespace {

using fuzz::Input;

using Entry = DiskEntry;
constexpr size_t kSummed = sizeof(Entry) - sizeof(uint32_t);
constexpr uint64_t kMaxRange = 1 << 16;

std::string_view Data(std::string_view bytes) { return Input(bytes).Text(); }
// Returns the bytes after the data: whole entries and a remainder.
std::string_view Index(std::string_view bytes) {
  Input input(bytes);
  input.Text();
  return input.Rest();
}

std::vector<Entry> EntriesOf(std::string_view index) {
  std::vector<Entry> entries(index.size() / sizeof(Entry));
  if (!entries.empty())
    std::memcpy(entries.data(), index.data(), entries.size() * sizeof(Entry));
  return entries;
}

// Corrects sums of entries; also of ranges, if there is such a range.
void Repair(std::span<char> bytes) {
  const std::string_view all(bytes.data(), bytes.size());
  const std::string_view data = Data(all), index = Index(all);
  char* at = bytes.data() + (index.data() - all.data());
  for (Entry entry : EntriesOf(index)) {
    std::memcpy(entry.magic, "leatdc01", 8);
    if (entry.offset <= data.size() && entry.size <= data.size() - entry.offset)
      entry.crc = Crc32c(data.substr(entry.offset, entry.size));
    entry.entry_crc = Crc32c(
        std::string_view(reinterpret_cast<const char*>(&entry), kSummed));
    std::memcpy(at, &entry, sizeof entry);
    at += sizeof entry;
  }
}

void Run(std::string_view bytes) {
  static const TempDir& dir = *new TempDir;
  static const bool quiet = SetLogLevel("error").ok();
  fuzz::Require(quiet);
  for (const auto& file : std::filesystem::directory_iterator(dir.path()))
    std::filesystem::remove(file);
  const std::string_view data = Data(bytes), index = Index(bytes);
  const std::vector<Entry> entries = EntriesOf(index);
  const DiskSegmentName name = {
      .stratum = entries.empty() ? 0 : StratumOf(entries.front().high),
      .number = 7};
  dir.Write(name.File("data"), data);
  dir.Write(name.File("index"), index);
  const auto opened =
      DiskCache::Open({.directory = dir.path(), .max_bytes = 1 << 20});
  fuzz::Require(opened.ok());
  DiskCache& cache = **opened;
  std::vector<std::byte> into;
  for (const Entry& entry : entries) {
    if (entry.size > kMaxRange) continue;
    into.resize(entry.size);
    if (!cache.Get(nullptr, {entry.high, entry.low}, into)) continue;
    // Some entry of that key says so, but it need not be this one.
    fuzz::Require(
        data.find(std::string_view(reinterpret_cast<const char*>(into.data()),
                                   into.size())) != std::string_view::npos);
  }
  const RangeKey key = RangeKey::Of("s3://bucket/new", 5, 100);
  const std::vector<std::byte> range(100, std::byte{42});
  cache.Put(nullptr, key, range);
  into.assign(100, std::byte{0});
  fuzz::Require(cache.Get(nullptr, key, into) && into == range);
  fuzz::Require(cache.stats().bytes <= 1 << 20);
}

// Returns the segment that a cache writes: its data with their length, its
// index.
std::string Written(size_t ranges) {
  const TempDir dir;
  {
    const auto cache =
        DiskCache::Open({.directory = dir.path(), .max_bytes = 1 << 20});
    fuzz::Require(cache.ok());
    for (size_t i = 0; i < ranges; ++i) {
      const std::vector<std::byte> range(20 + i, static_cast<std::byte>(i));
      (*cache)->Put(nullptr, {.high = 5, .low = i}, range);
    }
  }
  const DiskSegmentName name = {.stratum = StratumOf(5), .number = 1};
  const auto read = [&](const char* kind) {
    std::ifstream file(dir.path() + "/" + name.File(kind), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  return fuzz::PutText(read("data")) + read("index");
}

std::vector<std::string> Seeds() {
  const std::string whole = Written(3);
  return {whole, whole.substr(0, whole.size() - 20), Written(1),
          fuzz::PutText("no index"), fuzz::PutText("") + std::string(100, 'x')};
}

const fuzz::Target kTarget({.name = "disk_cache",
                            .run = Run,
                            .seeds = Seeds,
                            .runs = 500,
                            .repair = Repair});

}  // namespace
}  // namespace leat::worker::disk_cache_fuzz
