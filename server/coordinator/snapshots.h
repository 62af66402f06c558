// SPDX-License-Identifier: Apache-2.0
//
// What findings are made of, copied under the lock: counts, and the first few
// of each kind.
#pragma once

#include "core/clock.h"
#include "server/coordinator/parts.h"
#include "server/observe/reports.h"

namespace leat::server {

Snapshot SnapshotOf(const Parts& parts, Now now);

// After a start, workers of before may be on their way.
bool WorkersMayCome(const Parts& parts, MonotonicTime now);

}  // namespace leat::server
