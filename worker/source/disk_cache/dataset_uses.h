// SPDX-License-Identifier: Apache-2.0
//
// DatasetUses: tracks which datasets jobs read on this worker. Caches use it to
// decide whose records they may give up.
//
//            Begin              the last use ends           `rest` later
//     idle ─────────► in use ─────────────────────► resting ────────────► idle
//                       ▲                              │
//                       └──────────── Begin ───────────┘
//
// A use is an open stream of rows (worker/serving/rows_handler.h). A trainer
// that validates, or writes a checkpoint, requests nothing for a while, and its
// streams close: its dataset rests, and still counts as living for the caches.
// A dataset that is in use or rests is said to live.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/mutex.h"

namespace leat::worker {

class DatasetUses {
 public:
  static constexpr Duration kRest = std::chrono::minutes(10);
  // In addition to those that live.
  static constexpr size_t kMaxDatasets = 4096;

  // `clock` outlives it and all uses.
  explicit DatasetUses(const Clock& clock, Duration rest = kRest)
      : state_(std::make_shared<State>(clock, rest)) {}

  // Marks the dataset as in use while the result exists, which may outlive
  // this.
  std::shared_ptr<const void> Begin(const Digest& dataset);

  struct Standing {
    bool lives = false;
    // When its last use ended; min(): it was never used, max(): one is under
    // way.
    MonotonicTime ended = MonotonicTime::min();
  };
  Standing Of(const Digest& dataset) const;

 private:
  struct Entry {
    size_t uses = 0;
    MonotonicTime ended = MonotonicTime::min();
  };
  struct State {
    State(const Clock& clock, Duration rest) : clock(clock), rest(rest) {}
    Standing StandingOf(const Entry& entry) const;

    const Clock& clock;
    const Duration rest;
    Mutex mu;
    absl::flat_hash_map<Digest, Entry> datasets ABSL_GUARDED_BY(mu);
  };
  class Use;

  const std::shared_ptr<State> state_;
};

}  // namespace leat::worker
