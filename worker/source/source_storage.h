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

// Reads a list, or other text that a listing depends on, whole; whoever watches
// the storage learns its hash. kResourceExhausted: larger than `max_bytes`.
absl::StatusOr<std::string> ReadText(const SourceLimits& limits,
                                     const std::string& uri,
                                     const StoredFile& file,
                                     uint64_t max_bytes);
// For who reads a text in pieces: whoever watches learns its hash, too, unless
// it is so large that hashing would take long.
absl::Status NoteText(const SourceLimits& limits, const std::string& uri,
                      const StoredFile& file);

}  // namespace leat::worker
