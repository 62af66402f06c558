// SPDX-License-Identifier: Apache-2.0
//
// ConsumerPast: what a consumer did since the first step of its session, slot
// by slot of the history, and how its waits lie in time: a verdict is of waits
// that go on.
//
//   slots of 2 s      |...|...|...|...|...|...|...|...|...|...|
//   in one stretch      ##                                        may be over
//   has stopped       ####################........................  is over
//   come again          #       #       #       #                 go on
//
// Waits that come again, a step or a shard or a checkpoint apart, are looked at
// since the first of the newest ones that are about as far apart, however few
// of them a minute has.
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

// So long and so many steps, or more steps beyond those of a whole window
// (which may have been ready when the trainer began), are enough for a verdict;
// of the latter, so many samples.
inline constexpr Duration kEnoughTime = std::chrono::seconds(20);
inline constexpr uint64_t kFewSteps = 3;
inline constexpr uint64_t kEnoughSteps = 50;
inline constexpr size_t kEnoughSamples = 3;
// How far back waits that come again are looked for.
inline constexpr Duration kLookBack = std::chrono::minutes(10);

struct ConsumerPast {
  ConsumerFigures figures;
  MonotonicTime begin{};              // what they are of begins here
  bool enough = false;                // for a verdict
  WaitsBySlot waits;                  // the share of its time
  std::map<int64_t, uint64_t> steps;  // that it took, by slot
  bool come_again = false;            // its waits

  // The slot in which it had stopped to wait: since then it has hardly waited,
  // for `time` and `steps` steps at least. nullopt: it waits, or never did.
  std::optional<int64_t> StoppedIn(Duration time, uint64_t steps) const;
  // Whether nearly all of the waits are in one or two slots, of more; or it may
  // have stopped, though not for long enough to be sure.
  bool MayBeOver() const;
  // The first slot of the newest waits that come again; nullopt: there are
  // none.
  std::optional<int64_t> ComeAgainSince() const;
};

}  // namespace leat::server
