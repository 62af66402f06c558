// SPDX-License-Identifier: Apache-2.0
//
// IdleWork: forms that decode threads could not pay for, and whether this
// worker has time for them. Threads that make them are IdleForms'
// (worker/cache/idle_forms.h).
//
// The worker has time while it owes no row: none waits, is being read or
// computed, or is on a device. Then no consumer waits for it, since whoever
// waits has asked for rows that have not come. The scheduler says so
// (SetOwing), and closed() is what threads look at that make a form.
//
// A form is offered by the row that decoded its record, in the order of rows: a
// sequential order reads records again in that order. A record that is decoded
// again is offered again, behind the others.
//
// Bounds: kMost forms; what comes when there are as many is not taken, and
// offered again by the next decode.
//
// Thread-safe. What decode threads call takes a lock for no longer than a
// lookup, and no thread of low priority ever holds it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/hash.h"
#include "core/mutex.h"
#include "worker/cache/sample_cache.h"
#include "worker/compute/timed_signal.h"
#include "worker/image/jpeg/forms/kinds.h"

namespace leat::worker {

// A form that is wanted beside a record in memory.
struct LackingForm {
  SampleCache::DatasetPtr dataset;
  uint64_t record = 0;
  // Where its file lies in memory. The record may be gone: these bytes are read
  // by nobody before the cache has said that it holds them.
  std::span<const std::byte> file;
  JpegFormKind kind = JpegFormKind::kSeekIndex;
  bool gray = false;  // the colours of pixels
  // Whose row decoded it, for the dataset's horizon.
  Digest job{};
  uint64_t epoch = 0;
};

class IdleWork {
 public:
  static constexpr size_t kMost = 1 << 16;

  // By the scheduler, under one lock: whether the worker owes a row.
  void SetOwing(bool owing);
  // Closed for good: the worker drains.
  void Shut();
  // Not 0: no form may be begun, and what is being made is given up.
  const std::atomic<uint32_t>& closed() const { return closed_; }
  // Returns how often the worker came to owe a row.
  uint64_t closings() const { return closings_; }

  // By a row that computes. Takes the place of what waits of the record.
  void Offer(LackingForm form);
  // The record's form is of no use any more.
  void Forget(const SampleCache::DatasetPtr& dataset, uint64_t record);

  // The one that waits longest.
  std::optional<LackingForm> Take();
  // It was taken, and is not made: it is the next one, unless its record was
  // offered again.
  void GiveBack(LackingForm form);
  size_t size() const { return size_; }

  // Notified when it is opened and something waits.
  TimedSignal& opened() { return opened_; }

 private:
  static constexpr uint32_t kOwing = 1, kShut = 2;
  using Key = std::pair<const void*, uint64_t>;
  struct Waiting {
    LackingForm form;
    int64_t turn = 0;
  };

  void Put(const Key& key, LackingForm form, int64_t turn)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  std::atomic<uint32_t> closed_{0};
  std::atomic<uint64_t> closings_{0};
  std::atomic<size_t> size_{0};
  TimedSignal opened_;
  Mutex mu_;
  absl::flat_hash_map<Key, Waiting> waiting_ ABSL_GUARDED_BY(mu_);
  std::map<int64_t, Key> turns_ ABSL_GUARDED_BY(mu_);
  int64_t next_turn_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace leat::worker
