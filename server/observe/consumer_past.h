// SPDX-License-Identifier: Apache-2.0
//
// ConsumerPast: what a consumer did since the first step of its session, by
// slot of the history, and how its waits are distributed in time: a verdict is
// about waits that continue.
//
//   slots of 2 s      |...|...|...|...|...|...|...|...|...|...|
//   in one stretch      ##                                        may be over
//   has stopped       ####################........................  is over
//   come again          #       #       #       #                 go on
//
// Waits that recur (a step or a shard or a checkpoint apart) are judged since
// the first of the newest ones that are about equally far apart, however few
// there are per minute.
//
// Pure, and thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "core/observe/bottleneck.h"
#include "server/observe/history.h"
#include "server/observe/worker_slots.h"

namespace leat::server {

// A verdict needs kEnoughTime and kFewSteps; or kEnoughSteps beyond those of a
// whole window (which may have been ready when the trainer began), in
// kEnoughSamples.
inline constexpr Duration kEnoughTime = std::chrono::seconds(20);
inline constexpr uint64_t kFewSteps = 3;
inline constexpr uint64_t kEnoughSteps = 50;
inline constexpr size_t kEnoughSamples = 3;
// Recurring waits are searched this far back.
inline constexpr Duration kLookBack = std::chrono::minutes(10);

struct ConsumerPast {
  ConsumerStatistics mean;
  MonotonicTime begin{};              // of the period that is described
  bool enough = false;                // enough for a verdict
  WaitsBySlot waits;                  // share of each slot's time
  std::map<int64_t, uint64_t> steps;  // steps taken, by slot
  bool come_again = false;            // its waits recur

  // Returns the slot in which it stopped waiting: since then it has hardly
  // waited, for at least `time` and `steps` steps. nullopt: it waits, or never
  // did.
  std::optional<int64_t> StoppedIn(Duration time, uint64_t steps) const;
  // Returns whether nearly all of the waits are in one or two slots, out of
  // more; or it may have stopped, but not for long enough to be sure.
  bool MayBeOver() const;
  // Returns the first slot of the newest recurring waits; nullopt: there are
  // none.
  std::optional<int64_t> ComeAgainSince() const;
};

}  // namespace leat::server
