// SPDX-License-Identifier: Apache-2.0
//
// The inputs of findings, copied under the lock: counts, and the first few
// entries of each kind.
#pragma once

#include "core/clock.h"
#include "server/coordinator/parts.h"
#include "server/observe/reports.h"

namespace leat::server {

Snapshot SnapshotOf(const Parts& parts, Now now);

// Returns true after a start, while earlier workers may still be reconnecting.
bool WorkersMayCome(const Parts& parts, MonotonicTime now);

}  // namespace leat::server
