// SPDX-License-Identifier: Apache-2.0
//
// Files of records, and DALI's indexes of them: the records in a file are found
// by its index, if there is one, otherwise by walking it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/source/record_paths.h"
#include "worker/source/source.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

struct IndexedFiles {
  std::vector<ListedFile> files;
  std::vector<ListedFile> index;  // one per file, or empty
};

// True for a name below a directory: *.idx, *.index.
bool IsIndexName(std::string_view name);

// Lists `paths` and `index` (record_paths.h). kInvalidArgument: not one index
// per file; messages call the files `what`. Others as ListPaths.
absl::StatusOr<IndexedFiles> ListIndexed(const std::vector<std::string>& paths,
                                         const std::vector<std::string>& index,
                                         bool (*is_own)(std::string_view),
                                         std::string_view what,
                                         const SourceLimits& limits);

// Calls, on several threads, for file i either walk(i, file) or by_index(i, the
// text of its index, file), whose errors then name both files. Ends with the
// error of the first file that has one.
absl::Status ReadIndexed(
    const IndexedFiles& listing, const SourceLimits& limits,
    const std::function<absl::Status(size_t, const StorageFile&)>& walk,
    const std::function<absl::Status(size_t, std::string_view,
                                     const StorageFile&)>& by_index);

// Does the same, and calls take(i) on this thread, in order, so that only the
// data of a few files waits to be taken.
absl::Status ReadIndexedInOrder(
    const IndexedFiles& listing, const SourceLimits& limits,
    const std::function<absl::Status(size_t, const StorageFile&)>& walk,
    const std::function<absl::Status(size_t, std::string_view,
                                     const StorageFile&)>& by_index,
    const std::function<absl::Status(size_t)>& take);

}  // namespace leat::worker
