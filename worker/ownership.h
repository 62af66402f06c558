// SPDX-License-Identifier: Apache-2.0
//
// Ownership: which shards of which datasets this worker owns first, as last
// assigned. Only caching depends on it. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/mutex.h"

namespace leat::worker {

class Ownership {
 public:
  explicit Ownership(size_t max_datasets = 1000)
      : max_datasets_(max_datasets) {}

  // owned[shard].
  void Set(const std::string& dataset_id, std::vector<bool> owned) {
    MutexLock lock(&mu_);
    if (owned_.size() >= max_datasets_ && !owned_.contains(dataset_id)) return;
    owned_[dataset_id] = std::move(owned);
  }
  // True also where nothing is known.
  bool Owns(const std::string& dataset_id, uint32_t shard) const {
    MutexLock lock(&mu_);
    const auto it = owned_.find(dataset_id);
    return it == owned_.end() || shard >= it->second.size() ||
           it->second[shard];
  }

 private:
  const size_t max_datasets_;
  mutable Mutex mu_;
  absl::flat_hash_map<std::string, std::vector<bool>> owned_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::worker
