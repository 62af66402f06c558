// SPDX-License-Identifier: Apache-2.0
//
// StorageBackend: the implementation of a Storage. Its remote part begins with
// its first use, so a process that reads only local files has no thread for it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "core/mutex.h"
#include "worker/source/storage/base/allowed.h"
#include "worker/source/storage/base/open_file_budget.h"
#include "worker/source/storage/base/uri.h"
#include "worker/source/storage/remote/remote.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

// Thread-safe.
class StorageBackend {
 public:
  // `disk`: may be nullptr. REQUIRES: hooks.getenv.
  StorageBackend(const StorageConfig& config, StorageHooks hooks,
                 std::shared_ptr<const AllowedReads> allowed,
                 std::shared_ptr<DiskCache> disk);

  const StorageConfig& config() const { return config_; }
  const std::shared_ptr<const AllowedReads>& allowed() const {
    return allowed_;
  }
  DiskCache* disk() const { return disk_.get(); }  // may be nullptr
  const std::shared_ptr<DiskCache>& shared_disk() const { return disk_; }
  const std::shared_ptr<OpenFileBudget>& open_files() const {
    return open_files_;
  }
  StorageCounters counters() const;

  absl::StatusOr<std::shared_ptr<const StorageFile>> OpenRemote(
      const StorageUri& uri, std::string_view expected,
      DiskCache::DatasetPtr dataset);
  absl::StatusOr<StoredObject> StatRemote(const StorageUri& uri);
  absl::StatusOr<std::vector<StoredObject>> ListRemote(
      const StorageUri& uri, const std::atomic<bool>* cancelled);
  // Has the contract of Storage::Stop.
  void Stop();

 private:
  absl::StatusOr<std::shared_ptr<Remote>> GetRemote();
  // Returns nullptr for http. A failure is not kept: the next call tries again.
  absl::StatusOr<std::shared_ptr<S3Account>> AccountOf(UriScheme scheme);

  // Constant after construction.
  StorageConfig config_;
  StorageHooks hooks_;
  const std::shared_ptr<const AllowedReads> allowed_;
  const std::shared_ptr<DiskCache> disk_;
  const std::shared_ptr<OpenFileBudget> open_files_;
  mutable Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<Remote> remote_ ABSL_GUARDED_BY(mu_);
  std::map<UriScheme, std::shared_ptr<S3Account>> accounts_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::worker
