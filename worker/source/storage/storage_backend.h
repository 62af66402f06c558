// SPDX-License-Identifier: Apache-2.0
//
// StorageBackend: what a Storage holds; the remote part begins with its first
// use, so a process that reads local files only has no thread for it.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "core/mutex.h"
#include "worker/source/storage/storage.h"
#include "worker/source/storage/uri.h"

namespace leat::worker {

class StorageBackend {
 public:
  StorageBackend(const StorageConfig& config, StorageHooks hooks)
      : config_(config), hooks_(std::move(hooks)) {}

  const StorageConfig& config() const { return config_; }

  absl::StatusOr<std::shared_ptr<const StoredFile>> OpenRemote(
      const StorageUri& uri, std::string_view expected);
  absl::StatusOr<StoredObject> StatRemote(const StorageUri& uri);
  absl::StatusOr<std::vector<StoredObject>> ListRemote(
      const StorageUri& uri, const std::atomic<bool>* cancelled);

 private:
  const StorageConfig config_;
  const StorageHooks hooks_;
};

}  // namespace leat::worker
