// SPDX-License-Identifier: Apache-2.0
//
// DiskCacheTest: a disk cache in the test's own folder, and ranges for it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/worker/temp_dir.h"
#include "worker/source/disk_cache/disk_cache.h"

namespace leat::worker {

constexpr uint64_t kDiskBytes = 1 << 20;  // so ranges of up to 32 KiB

class DiskCacheTest : public testing::Test {
 protected:
  static DiskCacheOptions In(const std::string& directory,
                             uint64_t bytes = kDiskBytes) {
    return {.directory = directory, .max_bytes = bytes};
  }
  void Open(uint64_t bytes = kDiskBytes) {
    cache_.reset();
    DiskCacheOptions options = In(path_, bytes);
    options.uses = &uses_;
    options.clock = &clock_;
    auto cache = DiskCache::Open(options);
    ASSERT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
  }
  // Returns range `i` of an object, by its bytes.
  static std::string Range(uint64_t i, size_t size = 1000) {
    std::string bytes(size, static_cast<char>(i));
    std::memcpy(bytes.data(), &i, sizeof i);
    return bytes;
  }
  static RangeKey KeyOf(uint64_t i, size_t size = 1000) {
    return RangeKey::Of("http://h/o size=1 etag=\"v\"", i * 1000, size);
  }
  static void Put(DiskCache& cache, uint64_t i, size_t size = 1000,
                  const DiskCache::DatasetPtr& dataset = nullptr) {
    const std::string bytes = Range(i, size);
    cache.Put(dataset, KeyOf(i, size), std::as_bytes(std::span(bytes)));
  }
  // Returns whether it is there; then it equals what was put.
  static bool Has(DiskCache& cache, uint64_t i, size_t size = 1000,
                  const DiskCache::DatasetPtr& dataset = nullptr) {
    std::string bytes(size, '?');
    if (!cache.Get(dataset, KeyOf(i, size),
                   std::as_writable_bytes(std::span(bytes.data(), size))))
      return false;
    EXPECT_EQ(bytes, Range(i, size)) << i;
    return true;
  }
  int Count(uint64_t end, uint64_t begin = 0) {
    int count = 0;
    for (uint64_t i = begin; i < end; ++i) count += Has(*cache_, i) ? 1 : 0;
    return count;
  }
  DiskCache::DatasetPtr Dataset(const char* name) {
    return cache_->OpenDataset(HashOf(name), name);
  }
  // Returns the segment with range `i`.
  std::string FileOf(uint64_t i, const char* kind) const {
    for (const std::string& file : Files(std::string(".") + kind))
      if (DiskSegmentName::Of(std::filesystem::path(file).filename().string())
              ->stratum == StratumOf(KeyOf(i).high))
        return file;
    return "";
  }
  std::vector<std::string> Files(const std::string& kind) const {
    std::vector<std::string> files;
    for (const auto& each : std::filesystem::directory_iterator(path_))
      if (each.path().extension() == kind) files.push_back(each.path());
    std::sort(files.begin(), files.end());
    return files;
  }
  uint64_t BytesOnDisk() const {
    uint64_t bytes = 0;
    for (const auto& each : std::filesystem::directory_iterator(path_))
      bytes += each.file_size();
    return bytes;
  }

  FakeClock clock_;
  DatasetUses uses_{clock_};
  TempDir dir_;
  const std::string path_ = dir_.path() + "/cache";
  std::unique_ptr<DiskCache> cache_;
};

}  // namespace leat::worker
