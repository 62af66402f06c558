// SPDX-License-Identifier: Apache-2.0
//
// errno as a status, with its fault (core/cluster/fault.h).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace leat::worker {

// Names what was tried and the path. Code and fault: as RuleOfErrno.
absl::Status FileError(int error, std::string_view what, std::string_view path);

// The same of a file that an index names, at `path`, which messages call
// `name`. `folder` is what its dataset is known by; empty, or the file itself:
// the file's own folder. Where that is not there (FolderIsThere), a missing
// file is the worker's fault, and the message names the folder.
absl::Status IndexedFileError(int error, std::string_view what,
                              std::string_view name, const std::string& path,
                              const std::string& folder = {});

// Whether it is a folder with something in it. A mount that is missing leaves
// an empty one, or none.
bool FolderIsThere(const std::string& folder);

}  // namespace leat::worker
