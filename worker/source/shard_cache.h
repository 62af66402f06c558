// SPDX-License-Identifier: Apache-2.0
//
// ShardCache: what was last opened of a dataset's shards, within a bound of
// bytes and of entries. A shard that several threads want at once is opened by
// one of them, without a lock, and the others wait for it: all get the shard,
// or all the same error. Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "core/status.h"

namespace leat::worker {

// T has uint64_t bytes() const: what it costs.
template <class T>
class ShardCache {
 public:
  using Ptr = std::shared_ptr<const T>;

  ShardCache(uint64_t max_bytes, size_t max_entries)
      : max_bytes_(max_bytes), max_entries_(max_entries) {}

  // `open` -> absl::StatusOr<Ptr>. What fails is not kept. What is over
  // max_bytes alone is kept until something else comes.
  template <class Open>
  absl::StatusOr<Ptr> Get(uint64_t key, const Open& open) {
    const std::shared_ptr<Slot> slot = SlotOf(key);
    {
      MutexLock lock(&slot->mu);
      const bool waits = slot->opening;
      const uint64_t round = slot->round;
      while (slot->round == round && slot->opening)
        slot->opened.Wait(&slot->mu);
      if (slot->value != nullptr) return slot->value;
      if (waits) return slot->failed;
      slot->opening = true;
    }
    absl::StatusOr<Ptr> opened = open();
    {
      MutexLock lock(&slot->mu);
      slot->opening = false;
      ++slot->round;
      slot->failed = opened.status();
      if (opened.ok()) slot->value = *opened;
      slot->opened.NotifyAll();
    }
    if (!opened.ok()) return opened;
    const Ptr value = *std::move(opened);
    MutexLock lock(&mu_);
    const auto it = slots_.find(key);
    if (it == slots_.end() || it->second->slot != slot) return value;
    slot->bytes = value->bytes();
    bytes_ += slot->bytes;
    while (slots_.size() > 1 && bytes_ > max_bytes_) DropOldest();
    return value;
  }

  uint64_t bytes() const {
    MutexLock lock(&mu_);
    return bytes_;
  }

 private:
  struct Slot {
    Mutex mu;
    CondVar opened;
    bool opening ABSL_GUARDED_BY(mu) = false;
    uint64_t round ABSL_GUARDED_BY(mu) = 0;   // tries that have ended
    absl::Status failed ABSL_GUARDED_BY(mu);  // the last of them
    Ptr value ABSL_GUARDED_BY(mu);
    uint64_t bytes = 0;  // guarded by the cache's mu_
  };
  struct Entry {
    uint64_t key;
    std::shared_ptr<Slot> slot;
  };

  std::shared_ptr<Slot> SlotOf(uint64_t key) {
    MutexLock lock(&mu_);
    if (const auto it = slots_.find(key); it != slots_.end()) {
      order_.splice(order_.begin(), order_, it->second);
      return it->second->slot;
    }
    while (!slots_.empty() && slots_.size() >= max_entries_) DropOldest();
    order_.push_front({key, std::make_shared<Slot>()});
    slots_[key] = order_.begin();
    return order_.front().slot;
  }

  void DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    bytes_ -= order_.back().slot->bytes;
    slots_.erase(order_.back().key);
    order_.pop_back();
  }

  const uint64_t max_bytes_;
  const size_t max_entries_;
  mutable Mutex mu_;
  std::list<Entry> order_ ABSL_GUARDED_BY(mu_);  // last used first
  std::unordered_map<uint64_t, typename std::list<Entry>::iterator> slots_
      ABSL_GUARDED_BY(mu_);
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace leat::worker
