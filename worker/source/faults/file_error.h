// SPDX-License-Identifier: Apache-2.0
//
// Converts errno to a status with a fault (core/cluster/fault.h).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace leat::worker {

// Names the attempted operation and the path. Code and fault: as RuleOfErrno.
absl::Status FileError(int error, std::string_view what, std::string_view path);

// Does the same for a file that an index names, at `path`, which messages call
// `name`. `folder` identifies its dataset; empty, or the file itself: the
// file's own folder. If that is not there (FolderIsThere), a missing file is
// the worker's fault, and the message names the folder.
absl::Status IndexedFileError(int error, std::string_view what,
                              std::string_view name, const std::string& path,
                              const std::string& folder = {});

// True if it is a folder that is not empty. A missing mount leaves an empty
// folder, or none.
bool FolderIsThere(const std::string& folder);

}  // namespace leat::worker
