// SPDX-License-Identifier: Apache-2.0
//
// Converts abseil's times to core's, without overflow.
#pragma once

#include <algorithm>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/clock.h"

namespace leat::client {

// Clamps to 0 to ten years.
inline Duration ToDuration(absl::Duration duration) {
  return absl::ToChronoNanoseconds(
      std::clamp(duration, absl::ZeroDuration(), absl::Hours(24 * 365 * 10)));
}

inline MonotonicTime ToDeadline(absl::Time deadline) {
  return Clock::Real().Now() + ToDuration(deadline - absl::Now());
}

}  // namespace leat::client
