// SPDX-License-Identifier: Apache-2.0
//
// The data of a DiskCache.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "worker/source/disk_cache/disk_cache.h"

namespace leat::worker {

struct DiskCache::Segment {
  Segment(DiskDataset* dataset, DiskSegmentName name)
      : dataset(dataset), name(std::move(name)) {}

  DiskDataset* const dataset;
  const DiskSegmentName name;
  // Guarded by the cache's lock.
  uint64_t size = 0;     // bytes of the data file that were given out
  uint64_t entries = 0;  // entries of the index that were given out
  bool forgotten = false;
  std::vector<RangeKey> keys;

  uint64_t bytes() const { return size + entries * sizeof(DiskEntry); }
};

class DiskDataset final : public CachedDataset {
 public:
  using CachedDataset::CachedDataset;
  // Indexed by stratum, and guarded by the cache's lock.
  std::map<uint32_t, DiskCache::SegmentPtr> segments;
};

}  // namespace leat::worker
