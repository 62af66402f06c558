// SPDX-License-Identifier: Apache-2.0
//
// Retry repeats a call while the server is temporarily unavailable.
//
// Only kUnavailable is retried, so `attempt` must be safe to repeat. Pauses
// double, and a part of each is random, so that the processes of a training do
// not retry at once:
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

  // Passes `attempt` the remaining time. Returns its last result; after several
  // attempts the error says how long they took.
  absl::Status Run(
      absl::Time deadline,
      const std::function<absl::Status(absl::Duration left)>& attempt) const;
};

}  // namespace leat::client
