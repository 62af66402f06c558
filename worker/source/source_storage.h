// SPDX-License-Identifier: Apache-2.0
//
// Returns the storage that sources read from.
#pragma once

#include "worker/source/source.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

// Returns `limits.storage`, or if that is nullptr, the process's own with
// default bounds. Thread-safe.
const Storage& StorageOf(const SourceLimits& limits);

// Reads a list, or other text that a listing depends on, whole; a watcher of
// the storage gets its hash. kResourceExhausted: larger than `max_bytes`.
absl::StatusOr<std::string> ReadText(const SourceLimits& limits,
                                     const std::string& uri,
                                     const StorageFile& file,
                                     uint64_t max_bytes);
// For callers that read a text in pieces: a watcher gets its hash, too, unless
// it is so large that hashing would take long.
absl::Status NoteText(const SourceLimits& limits, const std::string& uri,
                      const StorageFile& file);

}  // namespace leat::worker
