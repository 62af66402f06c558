// SPDX-License-Identifier: Apache-2.0
//
// UnpackedBudget: limits the files, shards and chunks that all sources of a
// worker together keep decompressed. Each source also has its own bound
// (SourceLimits::max_unpacked_bytes); this one limits their sum.
//
// A source that needs room takes it, if necessary from the least recently used
// data of any source: a job without readers gives up what it holds to a job
// with readers. A holder is asked without its lock, and may hold other data in
// the meantime; so bytes count as returned only when they are.
//
// Thread-safe. Lock order: the budget's, then a holder's. So a holder calls
// Take without its own lock, and Return with or without it.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>

#include "core/mutex.h"

namespace leat::worker {

class UnpackedBudget {
 public:
  class Holder {
   public:
    virtual ~Holder() = default;
    // Gives up the data that it has not used for longest. Returns false if it
    // has none.
    virtual bool GiveUpOldest() = 0;
    // In uses, as the budget counts them.
    std::atomic<uint64_t> used_at{0};
  };

  explicit UnpackedBudget(uint64_t bytes) : bytes_(bytes) {}

  void Add(Holder* holder) {
    MutexLock lock(&mu_);
    holders_.insert(holder);
  }
  // Afterwards the holder is not asked any more.
  void Remove(Holder* holder) {
    MutexLock lock(&mu_);
    holders_.erase(holder);
  }
  void Used(Holder* holder) { holder->used_at = ++uses_; }

  // Returns whether the caller may hold `bytes` more. An item that alone
  // exceeds the budget may be held while nothing else is.
  bool Take(uint64_t bytes) {
    if (TryTake(bytes)) return true;
    MutexLock lock(&mu_);
    // Each round makes a holder smaller.
    while (!TryTake(bytes))
      if (!GiveUpOldest()) return false;
    return true;
  }
  void Return(uint64_t bytes) { taken_ -= bytes; }

  uint64_t bytes() const { return bytes_; }
  uint64_t taken() const { return taken_; }

 private:
  bool TryTake(uint64_t bytes) {
    uint64_t taken = taken_;
    do {
      if (taken > 0 && (bytes > bytes_ || taken > bytes_ - bytes)) return false;
    } while (!taken_.compare_exchange_weak(taken, taken + bytes));
    return true;
  }
  bool GiveUpOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::set<Holder*> asked;
    while (asked.size() < holders_.size()) {
      Holder* oldest = nullptr;
      for (Holder* each : holders_)
        if (!asked.contains(each) &&
            (oldest == nullptr || each->used_at < oldest->used_at))
          oldest = each;
      if (oldest->GiveUpOldest()) return true;
      asked.insert(oldest);
    }
    return false;
  }

  const uint64_t bytes_;
  std::atomic<uint64_t> taken_{0}, uses_{0};
  Mutex mu_;
  std::set<Holder*> holders_ ABSL_GUARDED_BY(mu_);
};

// A source's part of the budget for as long as the source exists.
class UnpackedShare {
 public:
  UnpackedShare() = default;
  ~UnpackedShare() {
    if (budget_ != nullptr) budget_->Return(bytes_);
  }
  UnpackedShare(const UnpackedShare&) = delete;
  UnpackedShare& operator=(const UnpackedShare&) = delete;
  // `budget` outlives it; nullptr: no bound. Returns false if there is no room.
  bool Take(UnpackedBudget* budget, uint64_t bytes) {
    if (budget == nullptr) return true;
    if (!budget->Take(bytes)) return false;
    budget_ = budget;
    bytes_ += bytes;
    return true;
  }

 private:
  UnpackedBudget* budget_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace leat::worker
