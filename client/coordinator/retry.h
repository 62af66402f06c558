// SPDX-License-Identifier: Apache-2.0
//
// Retry: asks again while the one asked is not there for a moment.
//
// Only kUnavailable is asked again, so `attempt` must be one that may be done
// twice. Pauses double, and a part of each is drawn, so that the processes of
// a training do not come back at once:
//
//     attempt at 0 s: UNAVAILABLE
//     pause 25-50 ms, attempt; pause 50-100 ms, attempt; and so on
//     pause 1-2 s, attempt, again and again
//     the pause would be longer than `deadline`: the last attempt's error
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace leat::client {

struct Retry {
  absl::Duration first = absl::Milliseconds(50);
  absl::Duration longest = absl::Seconds(2);
  std::function<double()> random;  // from [0, 1)
  std::function<absl::Time()> now;
  std::function<void(absl::Duration)> pause;

  // `attempt` is given the time that is left. Returns its last answer; after
  // several, how long they took is said.
  absl::Status Run(
      absl::Time deadline,
      const std::function<absl::Status(absl::Duration left)>& attempt) const;
};

}  // namespace leat::client
