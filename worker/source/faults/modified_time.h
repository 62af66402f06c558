// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace leat::worker {

// Returns a file's time of change in nanoseconds, as in indexes. Times that do
// not fit (beyond the year 2262) wrap around: they are compared, never added
// up.
constexpr int64_t NsOfTime(int64_t seconds, int64_t nanoseconds) {
  return static_cast<int64_t>(static_cast<uint64_t>(seconds) * 1'000'000'000 +
                              static_cast<uint64_t>(nanoseconds));
}

}  // namespace leat::worker
