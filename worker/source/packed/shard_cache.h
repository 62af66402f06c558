// SPDX-License-Identifier: Apache-2.0
//
// ShardCache: the most recently opened shards of a dataset, within a bound of
// bytes and of entries, and within a budget that all caches of the worker
// share. If several threads want a shard at once, one opens it, without a lock,
// and the others wait for it: all get the shard, or all the same error.
// Thread-safe.
#pragma once

#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "core/status.h"
#include "worker/source/packed/unpacked_budget.h"

namespace leat::worker {

// T has uint64_t bytes() const: its cost.
template <class T>
class ShardCache final : private UnpackedBudget::Holder {
 public:
  using Ptr = std::shared_ptr<const T>;

  // `budget` outlives it; nullptr: none is shared.
  ShardCache(uint64_t max_bytes, size_t max_entries,
             UnpackedBudget* budget = nullptr)
      : max_bytes_(max_bytes), max_entries_(max_entries), budget_(budget) {
    if (budget_ != nullptr) budget_->Add(this);
  }
  ~ShardCache() override {
    if (budget_ == nullptr) return;
    budget_->Remove(this);
    budget_->Return(bytes_);
  }

  // `open` returns absl::StatusOr<Ptr>. A failure is not kept. A shard that
  // alone exceeds max_bytes is kept until the next one comes. A shard that
  // exceeds the budget is not kept.
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
    Keep(key, slot, value->bytes());
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
    absl::Status failed ABSL_GUARDED_BY(mu);  // result of the last one
    Ptr value ABSL_GUARDED_BY(mu);
    uint64_t bytes = 0;  // guarded by the cache's mu_
  };
  struct Entry {
    uint64_t key;
    std::shared_ptr<Slot> slot;
  };

  void Keep(uint64_t key, const std::shared_ptr<Slot>& slot, uint64_t bytes) {
    const bool room = budget_ == nullptr || budget_->Take(bytes);
    MutexLock lock(&mu_);
    const auto it = slots_.find(key);
    // Missing: it was dropped while it was being opened.
    if (it == slots_.end() || it->second->slot != slot) {
      if (budget_ != nullptr && room) budget_->Return(bytes);
      return;
    }
    if (!room) return Drop(it->second);
    slot->bytes = bytes;
    bytes_ += bytes;
    while (slots_.size() > 1 && bytes_ > max_bytes_) DropOldest();
  }

  bool GiveUpOldest() override {
    MutexLock lock(&mu_);
    // A shard that is being opened holds nothing yet.
    for (auto at = order_.end(); at != order_.begin();) {
      --at;
      if (at->slot->bytes == 0) continue;
      Drop(at);
      return true;
    }
    return false;
  }

  std::shared_ptr<Slot> SlotOf(uint64_t key) {
    if (budget_ != nullptr) budget_->Used(this);
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
    Drop(std::prev(order_.end()));
  }
  void Drop(typename std::list<Entry>::iterator at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    bytes_ -= at->slot->bytes;
    if (budget_ != nullptr) budget_->Return(at->slot->bytes);
    slots_.erase(at->key);
    order_.erase(at);
  }

  const uint64_t max_bytes_;
  const size_t max_entries_;
  UnpackedBudget* const budget_;
  mutable Mutex mu_;
  std::list<Entry> order_ ABSL_GUARDED_BY(mu_);  // last used first
  std::unordered_map<uint64_t, typename std::list<Entry>::iterator> slots_
      ABSL_GUARDED_BY(mu_);
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace leat::worker
