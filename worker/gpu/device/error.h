// SPDX-License-Identifier: Apache-2.0
//
// Errors of devices. kResourceExhausted: the device has no memory for this now;
// the same with less may succeed. IsPoisoned: nothing will succeed any more in
// this process. Others: this call failed.
#pragma once

#include "absl/status/status.h"

namespace leat::worker {

bool IsPoisoned(const absl::Status& status);
// The error, as one that poisons.
absl::Status Poisoned(absl::Status status);

}  // namespace leat::worker
