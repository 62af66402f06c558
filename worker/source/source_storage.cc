// SPDX-License-Identifier: Apache-2.0
#include "worker/source/source_storage.h"

#include <memory>

#include "core/status.h"

namespace leat::worker {

const Storage& StorageOf(const SourceLimits& limits) {
  if (limits.storage != nullptr) return *limits.storage;
  // Lives until the process ends: sources may be read until then.
  static const Storage& shared =
      *Storage::Create(StorageConfig()).value().release();
  return shared;
}

namespace {

constexpr uint64_t kMaxHashedBytes = 32 << 20;

}  // namespace

absl::StatusOr<std::string> ReadText(const SourceLimits& limits,
                                     const std::string& uri,
                                     const StorageFile& file,
                                     uint64_t max_bytes) {
  ASSIGN_OR_RETURN(std::string text, ReadWhole(file, max_bytes));
  if (StorageWatcher* const watcher = StorageOf(limits).watcher();
      watcher != nullptr && text.size() <= kMaxHashedBytes)
    watcher->SawText(uri, HashOf(text));
  return text;
}

absl::Status NoteText(const SourceLimits& limits, const std::string& uri,
                      const StorageFile& file) {
  if (StorageOf(limits).watcher() == nullptr || file.size() > kMaxHashedBytes)
    return absl::OkStatus();
  return ReadText(limits, uri, file, kMaxHashedBytes).status();
}

}  // namespace leat::worker
