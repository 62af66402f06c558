// SPDX-License-Identifier: Apache-2.0
//
// IdleWork: forms that decode threads could not pay for, and whether this
// worker has time for them. IdleForms has the threads that make them
// (worker/cache/idle_forms.h).
//
// The worker has time while it owes no row: none waits, is being read or
// computed, or is on a device. Then no consumer waits for it, since a waiting
// consumer has requested rows that have not come. The scheduler reports this
// (SetOwing), and threads that make a form check closed().
//
// The row that decoded a record offers a form for it, in the order of rows: a
// sequential order reads records again in that order. A record that is decoded
// again is offered again, after the others.
//
// Bounds: kMost forms; an offer beyond that is not taken, and is repeated by
// the next decode.
//
// Thread-safe. Functions that decode threads call take a lock for no longer
// than a lookup, and no thread of low priority ever holds it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
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
  size_t field = 0;
  // The bytes of the field's file in memory. The record may be gone: they must not be
  // read before the cache has confirmed that it holds them.
  std::span<const std::byte> file;
  JpegFormKind kind = JpegFormKind::kSeekIndex;
  // The colours and the scale of pixels.
  bool gray = false;
  int pixel_halvings = 0;
  // The job whose row decoded it, for the dataset's horizon.
  Digest job{};
  uint64_t epoch = 0;
};

class IdleWork {
 public:
  static constexpr size_t kMost = 1 << 16;

  // Called by the scheduler, under one lock: whether the worker owes a row.
  void SetOwing(bool owing);
  // Closes permanently: the worker drains.
  void Shut();
  // If not 0, no form may be begun, and forms that are being made are given up.
  const std::atomic<uint32_t>& closed() const { return closed_; }
  // Returns how often the worker came to owe a row.
  uint64_t closings() const { return closings_; }

  // Called by a row that computes. Replaces what waits for the
  // record's field.
  void Offer(LackingForm form);
  // The form of the record's field is of no use any more.
  void Forget(const SampleCache::DatasetPtr& dataset, uint64_t record,
              size_t field);

  // Returns the form that has waited longest.
  std::optional<LackingForm> Take();
  // Gives back a form that was taken and is not made: it is the next one,
  // unless its record was offered again.
  void GiveBack(LackingForm form);
  size_t size() const { return size_; }

  // Notified when it is opened and something waits.
  TimedSignal& opened() { return opened_; }

 private:
  static constexpr uint32_t kOwing = 1, kShut = 2;
  using Key = std::tuple<const void*, uint64_t, size_t>;
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
