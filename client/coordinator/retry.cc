// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/retry.h"

#include <algorithm>

#include "core/counted.h"
#include "core/status.h"

namespace leat::client {
namespace {

constexpr absl::Duration kEnough = absl::Seconds(1);

}  // namespace

absl::Status Retry::Run(
    absl::Time deadline,
    const std::function<absl::Status(absl::Duration left)>& attempt) const {
  const absl::Time begin = now();
  absl::Duration whole = first;
  for (int tries = 1;; ++tries) {
    const absl::Time asked = now();
    const absl::Status status = attempt(deadline - asked);
    if (!absl::IsUnavailable(status)) return status;
    const absl::Duration drawn = whole * (1 - random() / 2);
    // If the last attempt waited for nearly all of the time, its answer is
    // better than that of another attempt with the short rest.
    const absl::Duration enough = std::min(now() - asked, kEnough);
    if (now() + drawn + enough >= deadline) {
      if (tries == 1) return status;
      return Unavailable("{} (tried {} in {})", Message(status),
                         Counted(tries, "time"),
                         absl::FormatDuration(now() - begin));
    }
    pause(drawn);
    whole = std::min(longest, whole * 2);
  }
}

}  // namespace leat::client
