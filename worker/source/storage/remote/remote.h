// SPDX-License-Identifier: Apache-2.0
//
// Remote: objects of http, s3 and gs.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/source/disk_cache/disk_cache.h"
#include "worker/source/storage/base/counters.h"
#include "worker/source/storage/base/identity.h"
#include "worker/source/storage/base/storage_file.h"
#include "worker/source/storage/remote/calls.h"
#include "worker/source/storage/remote/target.h"

namespace leat::worker {

// The parts that all remote files of a process share; files keep it alive.
// Thread-safe.
class Remote {
 public:
  // `clock` must outlive it; `random` and the rest are complete.
  Remote(const StorageConfig& config, std::unique_ptr<HttpTransport> transport,
         StorageClock* clock, std::function<uint64_t()> random,
         std::shared_ptr<DiskCache> disk = nullptr);

  const StorageConfig& config() const { return config_; }
  DiskCache* disk() const { return disk_.get(); }  // may be nullptr
  const Clock& clock() const { return *clock_; }
  WallTime WallNow() const { return clock_->WallNow(); }
  StorageCounters counters() const;  // of requests
  Verdict Run(std::span<const std::unique_ptr<HttpTask>> tasks);
  Verdict Run(std::unique_ptr<HttpTask> task);
  // Ends present and later runs.
  void Stop() { stop_.Stop(); }

 private:
  const StorageConfig config_;
  const std::unique_ptr<HttpTransport> transport_;
  StorageClock* const clock_;
  const std::function<uint64_t()> random_;
  const std::shared_ptr<DiskCache> disk_;  // files outlive their Storage
  LateRanges late_;
  std::atomic<uint64_t> requests_ = 0;
  std::atomic<uint64_t> retries_ = 0;
  std::atomic<uint64_t> hedges_ = 0;
  CallStop stop_;
  StorageWaits waits_;
  const CallContext context_;
};

// Returns the object's present identity.
absl::StatusOr<Identity> ProbeObject(Remote& remote, const Target& target);
// Returns the object as it was when it had `identity`, without a request.
// `dataset`: the owner of its ranges in the disk cache; may be nullptr.
std::shared_ptr<const StorageFile> OpenRemoteFile(
    std::shared_ptr<Remote> remote, Target target, Identity identity,
    DiskCache::DatasetPtr dataset);
// Lists everything below the key prefix of `uri`, as Storage::List.
absl::StatusOr<std::vector<StoredObject>> ListBucket(
    Remote& remote, const StorageUri& uri,
    const std::shared_ptr<S3Account>& account,
    const std::atomic<bool>* cancelled);

}  // namespace leat::worker
