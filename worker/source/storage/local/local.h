// SPDX-License-Identifier: Apache-2.0
//
// Local files for Storage: pread on a descriptor that a budget limits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/source/storage/base/allowed.h"
#include "worker/source/storage/base/config.h"
#include "worker/source/storage/base/identity.h"
#include "worker/source/storage/base/open_file_budget.h"
#include "worker/source/storage/base/storage_file.h"

namespace leat::worker {

// `allowed`: limits jobs; nullptr: the worker's own file. `budget` may close the
// file while no read uses it; a read then opens it again. kFailedPrecondition:
// neither a file nor a link to one. Others as AllowedReads::Open and
// IndexedFileError, which uses `folder`.
absl::StatusOr<std::shared_ptr<const StorageFile>> OpenLocal(
    std::shared_ptr<const AllowedReads> allowed,
    std::shared_ptr<OpenFileBudget> budget, const std::string& path,
    const std::string& name, const std::string& folder = {});
absl::StatusOr<StoredObject> StatLocal(const AllowedReads& allowed,
                                       const std::string& path,
                                       const std::string& name);
// kFailedPrecondition: not a directory.
absl::StatusOr<StoredFolder> StatLocalFolder(const AllowedReads& allowed,
                                             const std::string& path,
                                             const std::string& name);
// True if the path is on a network file system; false if it does not exist.
bool IsOnNetwork(const std::string& path);
// Has the contract of Storage::List. `on_folder` is called for each directory,
// before its entries are read, with its path below `path` and the time of its
// last change.
absl::StatusOr<std::vector<StoredObject>> ListLocal(
    const AllowedReads& allowed, const std::string& path,
    const StorageConfig& config, const std::atomic<bool>* cancelled,
    const std::function<void(const std::string& below, int64_t modified_ns)>&
        on_folder = nullptr);

}  // namespace leat::worker
