// SPDX-License-Identifier: Apache-2.0
//
// StorageCounters: a process's requests to storage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/source/disk_cache/cache_shares.h"

namespace leat::worker {

// For metrics: requests to remote storage, and to the disk cache, since the
// start.
struct StorageCounters {
  uint64_t requests = 0;  // all of them
  uint64_t retries = 0;   // included, after a failure
  uint64_t hedges = 0;    // included, second ones for late ranges
  // Ranges and records that were looked for in the disk cache, and the bytes of
  // its files.
  uint64_t disk_hits = 0;
  uint64_t disk_misses = 0;
  uint64_t disk_bytes = 0;
  std::vector<CachedDatasetStats> disk_datasets;
  // The errors that calls to remote storage failed with and are being retried
  // for: at most 4 different texts.
  std::vector<std::string> waits;
};

}  // namespace leat::worker
