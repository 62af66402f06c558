// SPDX-License-Identifier: Apache-2.0
//
// SampleCache: encoded samples in memory, by (dataset, record), within a limit
// of bytes.
//
// Replacement is S3-FIFO (Yang et al., "FIFO queues are all you need for cache
// eviction", SOSP 2023): a record enters a small queue; one that was met again
// moves to the main queue, others leave only their key behind, and a record
// whose key is still remembered enters the main queue at once. An epoch that
// passes over far more than fits therefore does not wash out what is kept, as
// it would with LRU.
//
// Reads are single-flight: of several threads that miss the same record one
// reads, the others wait for it. Errors are not kept.
// Thread-safe: locks are per slice of the keys, and none is held while reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "worker/source/source.h"

namespace leat::worker {

struct CacheKey {
  uint64_t dataset = 0;  // a number of the caller's for each dataset
  uint64_t record = 0;
  friend bool operator==(const CacheKey&, const CacheKey&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const CacheKey& key) {
    return H::combine(std::move(state), key.dataset, key.record);
  }
};

class SampleCache {
 public:
  using ReadFunction = absl::FunctionRef<absl::StatusOr<StoredSample>()>;

  // 0: keeps nothing, but reads are still single-flight.
  explicit SampleCache(uint64_t limit_bytes);
  ~SampleCache();

  // The record: kept, or what `read` returns. `keep`: whether a record that was
  // read may stay. May wait for another thread's read.
  absl::StatusOr<StoredSample> Get(const CacheKey& key, bool keep,
                                   ReadFunction read);

  // Whether it is kept, or on its way: Get would read nothing. Counts as
  // nothing.
  bool Contains(const CacheKey& key) const;

  struct Stats {
    uint64_t bytes = 0;
    uint64_t records = 0;
    uint64_t hits = 0;
    uint64_t misses = 0;  // reads
  };
  Stats stats() const;
  uint64_t limit_bytes() const { return limit_bytes_; }

 private:
  class Slice;
  Slice& SliceOf(const CacheKey& key) const;

  const uint64_t limit_bytes_;
  std::vector<std::unique_ptr<Slice>> slices_;
};

}  // namespace leat::worker
