// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/storage_backend.h"

#include "core/status.h"

namespace leat::worker {
namespace {

absl::Status NotYet(const StorageUri& uri) {
  return Unimplemented("{}: want a path or a file URI", uri.name);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const StoredFile>> StorageBackend::OpenRemote(
    const StorageUri& uri, std::string_view expected) {
  return NotYet(uri);
}

absl::StatusOr<StoredObject> StorageBackend::StatRemote(const StorageUri& uri) {
  return NotYet(uri);
}

absl::StatusOr<std::vector<StoredObject>> StorageBackend::ListRemote(
    const StorageUri& uri, const std::atomic<bool>* cancelled) {
  return NotYet(uri);
}

}  // namespace leat::worker
