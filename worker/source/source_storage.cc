// SPDX-License-Identifier: Apache-2.0
#include "worker/source/source_storage.h"

#include <memory>

namespace leat::worker {

const Storage& StorageOf(const SourceLimits& limits) {
  if (limits.storage != nullptr) return *limits.storage;
  // For the process's life: sources may be read until its end.
  static const Storage& shared =
      *Storage::Create(StorageConfig()).value().release();
  return shared;
}

}  // namespace leat::worker
