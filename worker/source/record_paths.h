// SPDX-License-Identifier: Apache-2.0
//
// Expands the argument `paths` of readers of large files.
//
// An entry is one of
//   a file         a path or URI; also with a pattern's characters, if it is
//                  local and there is such a file
//   a directory    with a slash at its end (a local one also without): the
//                  files below it that the format recognises by their names
//   a pattern      with * ? or [] after some slash, each for characters of one
//                  name, as in a shell: "s3://bucket/train-*/part-*.tar"
// Files of a directory or pattern come in the byte order of their names, and
// names that begin with a dot are skipped; entries stay in their order. http
// has no listings: there every entry is a file. Braces: braces.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/source/source.h"

namespace leat::worker {

struct ListedFile {
  std::string uri;
  uint64_t size = 0;
  std::string identity;
};

// `is_own`: whether a file below a directory belongs to the format, by its path
// below it. kNotFound: an entry that names no file (shown). Others as storage
// returns. kResourceExhausted: over limits.max_files. kCancelled.
absl::StatusOr<std::vector<ListedFile>> ListPaths(
    const std::vector<std::string>& paths, bool (*is_own)(std::string_view),
    const SourceLimits& limits);

// Returns the first of them, without a look at the others that braces stand
// for. Errors as ListPaths, for that one.
absl::StatusOr<ListedFile> FirstOfPath(const std::string& path,
                                       bool (*is_own)(std::string_view),
                                       const SourceLimits& limits);

// Returns limits.files, if the caller has listed them; otherwise ListPaths.
absl::StatusOr<std::vector<ListedFile>> FilesOfPaths(
    const std::vector<std::string>& paths, bool (*is_own)(std::string_view),
    const SourceLimits& limits);

// Returns a dataset's name for people: the last part of an entry, without a
// slash.
std::string NameOfPath(std::string_view path);
// True if a part of the path begins with a dot: listings skip it.
bool HasHiddenPart(std::string_view name);

}  // namespace leat::worker
