// SPDX-License-Identifier: Apache-2.0
//
// Errors of devices. kResourceExhausted: the device has no memory for this now;
// the same call with less may succeed. IsPoisoned: nothing will succeed in this
// process any more. Others: this call failed.
#pragma once

#include "absl/status/status.h"

namespace leat::worker {

bool IsPoisoned(const absl::Status& status);
// Returns the error, marked as poisoning.
absl::Status Poisoned(absl::Status status);

}  // namespace leat::worker
