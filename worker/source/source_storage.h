// SPDX-License-Identifier: Apache-2.0
//
// The storage that sources read by.
#pragma once

#include "worker/source/source.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

// `limits.storage`; where that is null, the process's own with default bounds.
// Thread-safe.
const Storage& StorageOf(const SourceLimits& limits);

}  // namespace leat::worker
