// SPDX-License-Identifier: Apache-2.0
//
// DiskWriter: writes to a disk cache in the background of reading and decoding.
// Items wait within a bound of bytes; items over the bound are dropped, since a
// later epoch will offer them again, and no reader waits for a slow disk.
//
// Thread-safe. Its thread ends with it; items that wait then are dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "worker/source/disk_cache/disk_cache.h"

namespace leat::worker {

class DiskWriter {
 public:
  // kResourceExhausted: the system gives no thread.
  static absl::StatusOr<std::unique_ptr<DiskWriter>> Start(
      std::shared_ptr<DiskCache> cache, uint64_t max_waiting_bytes);
  ~DiskWriter();
  DiskWriter(const DiskWriter&) = delete;
  DiskWriter& operator=(const DiskWriter&) = delete;

  // Like DiskCache::Put, but later. Returns false if too much waits, and drops
  // it.
  bool Offer(DiskCache::DatasetPtr dataset, const RangeKey& key,
             std::vector<std::byte> bytes);
  // Waits until nothing waits and nothing is being written. Returns false if
  // that was not so by `deadline`.
  bool WaitIdle(MonotonicTime deadline);

  uint64_t dropped() const;

 private:
  struct Item {
    DiskCache::DatasetPtr dataset;
    RangeKey key;
    std::vector<std::byte> bytes;
  };

  DiskWriter(std::shared_ptr<DiskCache> cache, uint64_t max_waiting_bytes);
  void Run();

  const std::shared_ptr<DiskCache> cache_;
  const uint64_t max_waiting_bytes_;
  mutable Mutex mu_;
  CondVar changed_;
  std::deque<Item> waiting_ ABSL_GUARDED_BY(mu_);
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;  // including those being written
  uint64_t dropped_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace leat::worker
